#!/usr/bin/env python3
"""Draws a ring of stages with the phases of its barriers: docs/figures/ring.svg."""
from drawing import Drawing, figure_program
from palette import GREEN, INK, LIGHT, PARITY, SOFT, WHITE

FIGURE = "docs/figures/ring.svg"
STAGES = 4
LAPS = 3
# The moment that is drawn: how many k-tiles have been released, have arrived, and have been asked for.
RELEASED, ARRIVED, ISSUED = 5, 7, 8


def phase(count, stage):
    """The current phase of a barrier of this stage: how often it has completed, when `count` k-tiles have done so."""
    return (count - stage + STAGES - 1) // STAGES


def parities(k_tile):
    """The parities for which the consumers wait at full, and the producer at empty, for this k-tile."""
    lap = k_tile // STAGES
    return lap % 2, (lap + 1) % 2


def state(stage):
    """(what the stage holds, its colour, the dashes of its border) in the moment that is drawn."""
    if stage == ISSUED % STAGES and ISSUED - STAGES < RELEASED:
        return f"k-tile {ISSUED - STAGES} has been released", WHITE, None
    k_tile = max(i for i in range(ISSUED) if i % STAGES == stage)
    if k_tile >= ARRIVED:
        return f"k-tile {k_tile} is on its way", WHITE, "5 4"
    if k_tile == RELEASED:
        return f"k-tile {k_tile} is being multiplied", LIGHT[GREEN], None
    return f"k-tile {k_tile} has arrived", WHITE, None


def draw_moment(drawing, x, y):
    """The stages as a ring of boxes, clockwise, with the phases of their barriers."""
    wide, high, gap_x, gap_y = 176, 92, 34, 52
    places = [(0, 0), (1, 0), (1, 1), (0, 1)]  # clockwise
    for stage, (column, row) in enumerate(places):
        left, top = x + column * (wide + gap_x), y + row * (high + gap_y)
        words, fill, dashes = state(stage)
        drawing.rect(left, top, wide, high, fill, stroke=INK, stroke_width=1.5, rx=5, dashes=dashes)
        drawing.text(left + wide / 2, top + 22, f"stage {stage}", size=13, anchor="middle", weight="bold")
        drawing.text(left + wide / 2, top + 41, words, size=12, anchor="middle")
        for index, (name, count) in enumerate((("full", ARRIVED), ("empty", RELEASED))):
            current = phase(count, stage)
            drawing.rect(left + 8 + index * 82, top + 54, 78, 28, PARITY[current % 2], stroke=SOFT)
            drawing.text(left + 47 + index * 82, top + 72, f"{name}: {current}", size=12, anchor="middle")
    middle_x, right = x + wide + gap_x / 2, x + wide + gap_x + wide / 2
    drawing.arrow(middle_x - 14, y + high / 2, middle_x + 15, y + high / 2, stroke=SOFT, width=2.5)
    drawing.arrow(right, y + high + 6, right, y + high + gap_y - 6, stroke=SOFT, width=2.5)
    drawing.arrow(middle_x + 14, y + high * 1.5 + gap_y, middle_x - 15, y + high * 1.5 + gap_y, stroke=SOFT, width=2.5)
    drawing.arrow(x + wide / 2, y + high + gap_y - 6, x + wide / 2, y + high + 6, stroke=SOFT, width=2.5)
    drawing.text(middle_x, y + high + gap_y / 2 - 2, "the roles go", size=12, fill=SOFT, anchor="middle")
    drawing.text(middle_x, y + high + gap_y / 2 + 14, "round this way", size=12, fill=SOFT, anchor="middle")


def draw_laps(drawing, x, y):
    """One row per lap: its k-tiles, and the parities for which the roles wait."""
    cell, row = 40, 54
    drawing.text(x + STAGES * cell / 2, y - 28, "k-tile in stage", size=12, fill=SOFT, anchor="middle")
    drawing.text(x + STAGES * cell + 8, y - 9, "parity waited for", size=12, fill=SOFT)
    for stage in range(STAGES):
        drawing.text(x + (stage + 0.5) * cell, y - 9, f"{stage}", size=12, fill=SOFT, anchor="middle")
    for lap in range(LAPS):
        top = y + lap * row
        consumer, producer = parities(lap * STAGES)
        for stage in range(STAGES):
            drawing.rect(x + stage * cell, top, cell - 4, 36, PARITY[lap % 2], stroke=SOFT)
            drawing.text(x + (stage + 0.5) * cell - 2, top + 23, str(lap * STAGES + stage), size=13, anchor="middle", weight="bold")
        drawing.text(x + STAGES * cell + 8, top + 8, f"lap {lap}", size=12, weight="bold")
        drawing.text(x + STAGES * cell + 8, top + 24, f"consumer at full: {consumer}", size=12)
        drawing.text(x + STAGES * cell + 8, top + 40, f"producer at empty: {producer}", size=12)


def draw():
    drawing = Drawing(760, 414, "A ring of stages with the phases of its barriers",
                      "Four stages of shared memory, each with a full and an empty barrier and their current phases, and for each lap the parity for "
                      "which the consumers and the producer wait.")
    drawing.caption("A ring of four stages and its phases",
                    "Each stage has two barriers: full says that its k-tile has arrived, empty that all its readers are done. A barrier's phase counts "
                    "how often that has happened; a wait names only the last bit of it, the parity.", room=64)
    draw_moment(drawing, 20, 82)
    draw_laps(drawing, 444, 134)
    following = RELEASED + 1
    lines = ["A wait for parity p passes when the current phase has the other parity. In the moment at the left:",
             f"the consumers multiply k-tile {RELEASED} and next wait for k-tile {following}, at full[{following % STAGES}] for parity "
             f"{parities(following)[0]}. Phase {phase(ARRIVED, following % STAGES)} is current: they pass.",
             f"The producer wants to load k-tile {ISSUED}, so it waits at empty[{ISSUED % STAGES}] for parity {parities(ISSUED)[1]}. Phase "
             f"{phase(RELEASED, ISSUED % STAGES)} is current: it passes."]
    for index, words in enumerate(lines):
        drawing.text(20, 350 + 18 * index, words, size=12)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
