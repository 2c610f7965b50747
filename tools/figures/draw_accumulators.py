#!/usr/bin/env python3
"""Draws which thread of a warpgroup holds which accumulator of wgmma: docs/figures/accumulators.svg."""
from drawing import Drawing, figure_program
from palette import BLUE, GRID, INK, LIGHT, ORANGE, SOFT

FIGURE = "docs/figures/accumulators.svg"
ROWS, BLOCK, WARPS, LANES = 64, 8, 4, 32  # rows of D, columns of a block, warps of a warpgroup, lanes of a warp
EXAMPLE = 6  # the lane that is framed
HALVES = [BLUE, ORANGE]  # the upper eight rows of a warp, the lower eight


def element(thread, register):
    """(row, column) of d[register] of a thread of the warpgroup, as in common/ptx/wgmma.cuh."""
    warp, lane = divmod(thread, LANES)
    block, place = divmod(register, 4)
    return 16 * warp + lane // 4 + 8 * (place // 2), BLOCK * block + 2 * (lane % 4) + place % 2


def holder(row, column):
    """(thread, register) of an element: the inverse of element()."""
    warp, inside = divmod(row, 16)
    half, lane_row = divmod(inside, 8)
    block, place = divmod(column, BLOCK)
    return LANES * warp + 4 * lane_row + place // 2, 4 * block + 2 * half + place % 2


def pair(register):
    return f"d[{register}], d[{register + 1}]"


def whole(drawing, left, top):
    """D: warps from top to bottom, blocks of 8 columns from left to right. The framed block is the one at the right."""
    cell, high, gap = 92, 27, 8
    drawing.text(left, top - 34, "D, 64 × N: every warp holds 16 rows", size=12, weight="bold")
    blocks = [("0–7", 0), ("8–15", 4), (None, None), ("N−8 to N−1", -4)]
    for index, (columns, first) in enumerate(blocks):
        x = left + index * cell
        drawing.text(x + cell / 2, top - 10, f"columns {columns}" if index == 0 else columns or "…", size=11, fill=SOFT, anchor="middle")
        for warp in range(WARPS):
            for half in range(2):
                y = top + warp * (2 * high + gap) + half * high
                drawing.rect(x, y, cell, high, LIGHT[HALVES[half]] if columns else "none", stroke=GRID)
                if not columns:
                    words = "…"
                elif first < 0:
                    words = f"d[N/2−{4 - 2 * half}], …"
                else:
                    words = pair(first + 2 * half)
                drawing.text(x + cell / 2, y + 18, words, size=11, anchor="middle")
    for warp in range(WARPS):
        y = top + warp * (2 * high + gap)
        drawing.text(left - 106, y + high + 4, f"warp {warp}", size=12, weight="bold")
        for half in range(2):
            row = element(LANES * warp, 2 * half)[0]
            drawing.text(left - 8, y + half * high + 18, f"{row}–{row + 7}", size=11, fill=SOFT, anchor="end")
    drawing.text(left - 8, top - 10, "rows", size=11, fill=SOFT, anchor="end")
    drawing.rect(left, top, cell, 2 * high, "none", stroke=INK, stroke_width=2)


def block_of_one_warp(drawing, left, top):
    """The 16 rows and 8 columns that a warp holds in d[0] to d[3]."""
    cell, high = 106, 21
    drawing.text(left, top - 34, "m64n8k16: rows 0 to 15, which warp 0 holds", size=12, weight="bold")
    drawing.text(left - 8, top - 10, "row", size=11, fill=SOFT, anchor="end")
    for column in range(0, BLOCK, 2):
        drawing.text(left + (column + 1) * cell / 2, top - 10, f"columns {column}, {column + 1}", size=11, fill=SOFT,
                     anchor="middle")
    for row in range(16):
        y = top + row * high
        drawing.text(left - 8, y + 15, str(row), size=11, fill=SOFT, anchor="end")
        for column in range(0, BLOCK, 2):
            lane, register = holder(row, column)
            x = left + column * cell / 2
            framed = lane == EXAMPLE
            drawing.rect(x, y, cell, high, LIGHT[HALVES[register // 2]], stroke=GRID)
            drawing.text(x + cell / 2, y + 15, f"lane {lane}: {pair(register)}", size=10, anchor="middle",
                         weight="bold" if framed else None)
    for register in (0, 2):
        row, column = element(EXAMPLE, register)
        drawing.rect(left + column * cell / 2, top + row * high, cell, high, "none", stroke=INK, stroke_width=2)


def draw():
    drawing = Drawing(1000, 474, "Which thread holds which accumulator of m64n8k16",
                      "The accumulator of wgmma m64nN has 64 rows. Warp w of the warpgroup holds rows 16 w to 16 w + 15. Lane "
                      "divided by 4 is the row in the upper eight rows; lane modulo 4 chooses two neighbouring columns of each "
                      "block of eight. Registers 0 and 1 lie in the upper eight rows, registers 2 and 3 eight rows below. Each "
                      "further block of 8 columns repeats this with the next four registers.")
    drawing.caption("Which thread holds which accumulator of wgmma m64nNk16",
                    "A thread holds two neighbouring columns of two rows, 8 rows apart. Each further block of 8 columns repeats this "
                    "with the next four registers.")
    whole(drawing, 126, 112)
    block_of_one_warp(drawing, 560, 112)
    rows = [element(EXAMPLE, register) for register in range(4)]
    words = [(f"Framed at the right: lane {EXAMPLE} of warp 0.", "bold"),
             (f"{EXAMPLE} / 4 = {rows[0][0]}: rows {rows[0][0]} and {rows[2][0]}. {EXAMPLE} % 4 = {EXAMPLE % 4}: columns "
              f"{rows[0][1]} and {rows[1][1]}.", None),
             ("Any lane of warp w, block j of 8 columns:", "bold"),
             ("d[4j], d[4j + 1]: row 16w + lane / 4, columns 8j + 2 (lane % 4) and + 1.", None),
             ("d[4j + 2], d[4j + 3]: the same columns, 8 rows below.", None)]
    for line, (text, weight) in enumerate(words):
        drawing.text(20, 380 + 18 * line + (6 if line > 1 else 0), text, size=12, weight=weight)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
