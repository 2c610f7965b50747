#!/usr/bin/env python3
"""Draws the roles of a warp-specialized kernel in time: docs/figures/roles.svg.

The times are those of the timeline of step 15, which is recorded first where it is missing (tools/figures/draw_trace.py).
"""
import draw_timelines
import draw_trace
from drawing import Drawing, figure_program
from palette import ACTIVITY, DARK, GREEN, GRID, INK, LIGHT, ORANGE, SOFT, WHITE

FIGURE = "docs/figures/roles.svg"
LEFT, WIDTH, ROW = 112, 628, 36
COPIES = [ORANGE, DARK[ORANGE]]  # of even and odd tiles
TILES = [GREEN, DARK[GREEN]]
ROWS = ["producer", "copy engine", "consumer 0", "consumer 1", "tensor cores"]


def of_sm(trace, name):
    """The events of SM 0's role or engine with this name; an engine may have several lanes."""
    for (process, thread), events in draw_trace.tracks(trace).items():
        if draw_trace.sm_of(process) == 0 and thread.startswith(name):
            yield thread, events


def k_tiles(trace):
    return int(trace["about"]["shape"].split("x")[2]) // trace["about"]["tile"][2]


def note(drawing, number, x, y):
    drawing.circle(x, y, 9, INK, stroke=WHITE)
    drawing.text(x, y + 4, str(number), size=12, fill=WHITE, anchor="middle", weight="bold")


def draw():
    trace = draw_trace.model_of("15")
    scale = WIDTH / trace["end"]
    spans = draw_timelines.spans_of(trace, 1)
    tiles = sorted({span.tile for span in spans})
    m, n, k = trace["about"]["shape"].split("x")
    rows, columns, depth = trace["about"]["tile"]
    drawing = Drawing(760, 460, "The roles of a warp-specialized kernel in time",
                      "The producer issues copies, the copy engine moves bytes, two consumer warpgroups issue multiplications and store, and the tensor "
                      "cores multiply, for two tiles one after the other.")
    top = drawing.caption("The roles in time",
                          f"Two tiles of {rows} × {columns} on one SM, K = {k}. The producer runs ahead of the consumers as far as the ring has stages, so the "
                          "tensor cores have work with hardly a pause, also from one tile to the next.") + 22
    x = 20
    for color, words in ((ORANGE, "copy, tile 0"), (DARK[ORANGE], "copy, tile 1"), (LIGHT[GREEN], "consumer has a tile"), (GREEN, "multiply, tile 0"),
                         (DARK[GREEN], "multiply, tile 1"), (ACTIVITY["store"], "epilogue, store")):
        drawing.rect(x, top - 10, 11, 11, color)
        drawing.text(x + 15, top, words, size=12, fill=SOFT)
        x += 26 + 6.5 * len(words)
    top += 16
    for index, name in enumerate(ROWS):
        drawing.text(LEFT - 10, top + ROW * index + 21, name, size=12, anchor="end")
        drawing.line(LEFT, top + ROW * (index + 1) - 2, LEFT + WIDTH, top + ROW * (index + 1) - 2, stroke=GRID)

    def place(clocks):
        return LEFT + scale * clocks

    for _, events in of_sm(trace, "producer"):
        for event in events:
            if event["name"] == "issue":
                drawing.rect(place(draw_trace.start_of(event)), top + 5, 3, 22, COPIES[event["args"]["tile"] % 2])
    copies = sorted((event for _, events in of_sm(trace, "copies") for event in events), key=draw_trace.start_of)
    lanes = []
    for number, event in enumerate(copies):
        begin, end = draw_trace.start_of(event), draw_trace.end_of(event)
        lane = next((i for i, free in enumerate(lanes) if free <= begin), len(lanes))
        lanes[lane:lane + 1] = [end]
        drawing.rect(place(begin), top + ROW + 3 + 7 * lane, scale * (end - begin), 5, COPIES[number // k_tiles(trace) % 2])
    for span in spans:
        begin, width = place(span.begin), scale * (span.end - span.begin)
        y = top + 5 + ROW * ROWS.index(span.row)
        if span.kind == "store":
            drawing.rect(begin, y, width, 22, ACTIVITY["store"])
            continue
        consumer = span.row != "tensor cores"
        color = TILES[span.tile % 2]
        drawing.rect(begin, y, width, 22, LIGHT[GREEN] if consumer else color, stroke=color if consumer else WHITE)
        drawing.text(begin + width / 2, y + 15, f"tile {span.tile}", size=12, fill=INK if consumer else WHITE, anchor="middle")
    bottom = top + ROW * len(ROWS)
    for clocks in range(0, trace["end"] + 1, 5000):
        drawing.line(place(clocks), bottom - 2, place(clocks), bottom + 4, stroke=SOFT)
        drawing.text(place(clocks), bottom + 18, f"{clocks:,}", size=11, fill=SOFT, anchor="middle")
    drawing.text(LEFT - 10, bottom + 18, "time in clocks", size=11, fill=SOFT, anchor="end")

    first = {tile: min(span.begin for span in spans if span.row == "tensor cores" and span.tile == tile) for tile in tiles}
    ahead = next(event for _, events in of_sm(trace, "producer") for event in events
                 if event["name"] == "issue" and event["args"]["tile"] == 1)
    store = next(span for span in spans if span.row == "consumer 0" and span.kind == "store" and span.tile == 0)
    gap = draw_timelines.gaps(spans)[0]
    notes = [(place(draw_trace.start_of(copies[0])) + 26, top + 16,
              f"At the start the producer issues the copies of {trace['about']['stages']} k-tiles, as many as the ring has stages."),
             (place(first[0]) - 16, top + 4 * ROW + 16,
              f"The tensor cores wait {first[0]:,} clocks for the first k-tile. A CTA pays for this wait once, when it starts."),
             (place(draw_trace.start_of(ahead)) - 14, top + 16,
              "The producer loads tile 1 while tile 0 is being multiplied. To the ring it is just the next k-tile."),
             (place(store.end) + 14, top + 2 * ROW + 16,
              "Consumer 0 stores its half of tile 0 while the tensor cores still work for consumer 1."),
             (place(first[1]) + 14, top + 4 * ROW + 16,
              f"Between the two tiles the tensor cores are idle for {gap} clocks.")]
    for number, (note_x, note_y, words) in enumerate(notes, 1):
        note(drawing, number, note_x, note_y)
        y = bottom + 26 + 20 * number
        note(drawing, number, 29, y - 4)
        drawing.text(46, y, words, size=12)
    y = bottom + 30 + 20 * (len(notes) + 1)
    drawing.text(20, y, f"Step 15, M × N × K = {m} × {n} × {k}, SM 0 of {trace['about']['sms']}.", size=11, fill=SOFT)
    drawing.text(20, y + 16, draw_trace.SOURCE, size=11, fill=SOFT)
    drawing.height = y + 30
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
