#!/usr/bin/env python3
"""Draws which step builds on which: docs/figures/step_map.svg.

The lines are those of .builds_on in the kernels.
"""
from drawing import Drawing, figure_program
from palette import BLUE, GREEN, PURPLE, SOFT, WHITE
from steps import builds_on, steps

FIGURE = "docs/figures/step_map.svg"
LAST_OF_CORE, LIBRARY = "18", ("22",)
TIERS = [("core", GREEN, "the core: 01 to 18"), ("elective", BLUE, "electives"), ("library", PURPLE, "the library: everything together")]
# What a branch is about, by the step with which it begins.
SUBJECTS = {"01": "01 to 03: CUDA cores · 04 to 07: Ampere's tensor cores · 08 to 17: Hopper", "18": "stream-K, schedules, L2",
            "30": "epilogues", "40": "layouts, 4-bit weights", "42": "fp8, int8, scales", "50": "matrix × vector", "52": "groups, MoE",
            "54": "maps changed on the device", "60": "two GPUs", "70": "Blackwell"}
COLUMN, ROW, RADIUS, LEFT, TOP = 36, 56, 13, 36, 128


def tier(step):
    number = step[:2]
    return "library" if number in LIBRARY else "core" if number <= LAST_OF_CORE else "elective"


def places():
    """{step: (column, row)}. A step stands one column to the right of the one it builds on: in the same row when it is the first to
    continue it, or else in the first row that is free for it and all that continue it."""
    known = steps()
    parent = {step: builds_on(step) for step in known}
    first = {}
    for step in known:
        first.setdefault(parent[step], step)
    found, taken = {}, set()
    for step in known:
        before = parent[step]
        if before is None:
            found[step] = 0, 0
        elif first[before] == step:
            found[step] = found[before][0] + 1, found[before][1]
        else:
            column, length, last = found[before][0] + 1, 1, step
            while last in first:
                last, length = first[last], length + 1
            row = 1
            while any((column + i, row) in taken for i in range(-1, length + 1)):
                row += 1
            found[step] = column, row
        taken.add(found[step])
    return found


def draw():
    where = places()
    colors = {name: color for name, color, _ in TIERS}
    width = LEFT + COLUMN * max(column for column, _ in where.values()) + 36
    height = TOP + ROW * max(row for _, row in where.values()) + 40
    drawing = Drawing(width, height, "Which step builds on which",
                      "The numbered steps as stations on lines: each line leads from the step that another one continues.")
    drawing.caption("The map of the steps", "A line leads from a step to those that continue its kernel. A step needs those to its left on its line.",
                    room=46)
    x = LEFT - 16
    for _, color, words in TIERS:
        drawing.circle(x + 6, 74, 6, color)
        drawing.text(x + 18, 78, words, size=12, fill=SOFT)
        x += 44 + 6.6 * len(words)

    def centre(step):
        column, row = where[step]
        return LEFT + COLUMN * column, TOP + ROW * row

    for step in sorted(where, key=lambda step: tier(step) == "core"):  # the lines of the core on top
        before = builds_on(step)
        if before is not None:
            (x1, y1), (x2, y2) = centre(before), centre(step)
            middle = (x1 + x2) / 2
            corners = [(x1, y1), (x2, y2)] if y1 == y2 else [(x1, y1), (middle, y1 + middle - x1), (middle, y2 - x2 + middle), (x2, y2)]
            drawing.polyline(corners, stroke=colors[tier(step)], width=3)
    for step in where:
        x, y = centre(step)
        drawing.circle(x, y, RADIUS, colors[tier(step)], stroke=WHITE)
        drawing.text(x, y + 4.5, step[:2], size=12, fill=WHITE, anchor="middle", weight="bold")
        if step[:2] in SUBJECTS:
            drawing.text(x - RADIUS, y - RADIUS - 6, SUBJECTS[step[:2]], size=12, fill=SOFT)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
