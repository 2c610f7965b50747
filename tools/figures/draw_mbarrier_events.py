#!/usr/bin/env python3
"""Draws the mbarriers of a ring as the emulator saw them: docs/figures/mbarrier_events.svg from the log in
docs/figures/runs.json.xz, which tools/figures/record_runs.py records with: tools/play events 11
"""
from drawing import ROOT, Drawing, figure_program
import packed_json
from palette import BLUE, GREEN, GRID, INK, ORANGE, PARITY, SOFT, WHITE
from record_runs import RUNS

FIGURE = "docs/figures/mbarrier_events.svg"
LEFT, COLUMN, LANE, BAND = 84, 20, 86, 26
MARKS = 30  # from the top of a lane to its band: room for what happens to the barrier


def short_name(event):
    """"mbarrier full[1] (shared + 0x18048)" -> "full[1]"."""
    return event["barrier"].removeprefix("mbarrier ").split(" (")[0]


def lanes(events):
    """The barriers by stage: full[0], empty[0], full[1], empty[1]."""
    names = {short_name(event) for event in events if "barrier" in event}
    return sorted(names, key=lambda name: (name.partition("[")[2], not name.startswith("full"), name))


def kilobytes(number):
    return f"{number // 1024}K" if number % 1024 == 0 else str(number)


def role(event):
    return "consumer" if short_name(event).startswith("full") else "producer"


def mark(drawing, event, x, top):
    """What one event looks like above the band of its barrier, whose lane begins at `top`."""
    band = top + MARKS
    middle = band - 10
    name = event["event"]
    if name in ("mbarrier_arrive", "mbarrier_arrive_expect_tx"):
        drawing.polygon([(x - 5, middle - 5), (x + 5, middle - 5), (x, middle + 5)], INK)
        if "bytes" in event:
            drawing.text(x, middle - 9, f"+{kilobytes(event['bytes'])}", size=9, fill=ORANGE, anchor="middle")
    elif name == "complete_tx":
        drawing.circle(x, middle, 5, ORANGE)
        drawing.text(x, middle - 9, f"−{kilobytes(event['bytes'])}", size=9, fill=ORANGE, anchor="middle")
    elif name.startswith("cp_async_bulk"):
        drawing.circle(x, middle, 4, WHITE, stroke=ORANGE)


def passed(drawing, event, x, last_x, top):
    """A wait that passes: below the band, from the first thread to the last. It waited for the phase before."""
    y = top + MARKS + BAND + 8
    color = GREEN if role(event) == "consumer" else BLUE
    drawing.line(x, top + MARKS, x, y, stroke=color, width=2)
    if last_x > x:
        drawing.line(x, y, last_x, y, stroke=color, width=2)
    drawing.circle(x, y, 3.5, color)
    drawing.text(x, y + 15, f"parity {(event['phase'] + 1) % 2}", size=10, fill=color, anchor="middle")


def draw():
    events = packed_json.read(ROOT / RUNS)["log"]
    names = lanes(events)
    events = [event for event in events if event["event"] != "mbarrier_init"]
    # "phase" is no event of its own in the figure: its barrier's colour changes behind the event that caused it.
    columns = [event for event in events if event["event"] != "phase"]
    times = [event["t"] for event in columns]
    right = LEFT + COLUMN * len(columns) + 10

    def column_of(time):
        """The x of the last column that is not later."""
        index = max((i for i, t in enumerate(times) if t <= time), default=0)
        return LEFT + COLUMN * (index + 0.5)

    height = 80 + LANE * len(names) + 56
    description = ("For each mbarrier of a ring of stages a band whose colour is the parity of the phase that runs. Above it "
                   "arrivals, expected bytes, issued copies and arriving bytes; below it the waits that pass.")
    drawing = Drawing(right + 14, height, "The mbarriers of a ring, as the emulator saw them", description)
    drawing.caption("The mbarriers of a ring: step 11, two stages, five k-tiles, one warpgroup",
                    "A band is the phase that runs. A wait for a parity passes when the band has the other parity. From left to right: the "
                    "emulator's order of events, one a column.", room=26)
    legend = [(0, 0, lambda x, y: drawing.polygon([(x - 5, y - 5), (x + 5, y - 5), (x, y + 5)], INK), "arrival"),
              (0, 110, lambda x, y: drawing.text(x, y + 5, "+", size=14, fill=ORANGE, anchor="middle", weight="bold"),
               "bytes expected"),
              (0, 260, lambda x, y: drawing.circle(x, y, 4, WHITE, stroke=ORANGE), "copy issued"),
              (0, 380, lambda x, y: drawing.circle(x, y, 5, ORANGE), "bytes arrive"),
              (1, 0, lambda x, y: drawing.line(x, y - 7, x, y + 7, stroke=BLUE, width=2), "the producer's wait passes"),
              (1, 200, lambda x, y: drawing.line(x, y - 7, x, y + 7, stroke=GREEN, width=2),
               "the consumers' wait passes, from the first thread to the last"),
              (1, 580, lambda x, y: drawing.rect(x - 6, y - 6, 12, 12, PARITY[0], stroke=GRID), "parity 0"),
              (1, 660, lambda x, y: drawing.rect(x - 6, y - 6, 12, 12, PARITY[1], stroke=GRID), "parity 1")]
    for line, offset, symbol, words in legend:
        x, y = LEFT + offset + 6, 44 + 22 * line
        symbol(x, y)
        drawing.text(x + 14, y + 4, words, size=11, fill=SOFT)

    for lane, name in enumerate(names):
        top = 82 + LANE * lane
        drawing.text(LEFT - 10, top + MARKS + 17, name, size=12, anchor="end", weight="bold")
        changes = [(column_of(event["t"]) + COLUMN / 2, event["phase"]) for event in events
                   if event["event"] == "phase" and short_name(event) == name]
        begin, phase = LEFT, 0
        for end, following in [*changes, (right, None)]:
            drawing.rect(begin, top + MARKS, end - begin, BAND, PARITY[phase % 2], stroke=GRID)
            words = f"phase {phase}, parity {phase % 2}"
            room = (end - begin) / 5.6
            if room < len(words):
                words = f"{phase}"
            drawing.text((begin + end) / 2, top + MARKS + 17, words, size=11, fill=INK, anchor="middle")
            begin, phase = end, following
    for index, event in enumerate(columns):
        x = LEFT + COLUMN * (index + 0.5)
        if "barrier" in event:
            top = 82 + LANE * names.index(short_name(event))
            if "wait" in event["event"]:
                passed(drawing, event, x, column_of(event.get("last_t", event["t"])), top)
            else:
                mark(drawing, event, x, top)
    top = 82 + LANE * len(names) + 4
    drawing.text(LEFT - 10, top + 17, "wgmma", size=12, anchor="end", weight="bold")
    for index, event in enumerate(columns):
        if event["event"] == "wgmma":
            drawing.rect(LEFT + COLUMN * index + 1, top, COLUMN - 2, 24, GREEN, rx=2)
            drawing.text(LEFT + COLUMN * (index + 0.5), top + 40, f"{event['instructions']}", size=11, fill=SOFT,
                         anchor="middle")
    drawing.text(LEFT - 10, top + 40, "issued", size=11, fill=SOFT, anchor="end")
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
