#!/usr/bin/env python3
"""Draws how a GEMM is cut, from D down to one wgmma: docs/figures/tile_hierarchy.svg."""
from drawing import Drawing, figure_program
from palette import BLUE, GREEN, GRID, INK, LIGHT, ORANGE, RED, SOFT, WHITE

FIGURE = "docs/figures/tile_hierarchy.svg"
# The default variant of step 15, 128x256_group16, at 4096 x 4096 x 4096.
SIZE = 4096
TILE_M, TILE_N, TILE_K = 128, 256, 64
WARPGROUPS = 2
WGMMA_K = 16
ROWS = TILE_M // WARPGROUPS  # of a warpgroup, and of a wgmma
ROLES = [BLUE, GREEN]        # warpgroup 0, warpgroup 1


def tiles():
    return (SIZE // TILE_M) * (SIZE // TILE_N)


def accumulators_per_thread():
    return ROWS * TILE_N // 128


def draw_problem(drawing, x, y):
    """A at the left, B transposed at the top, D between them; one tile and its operands are marked. Returns the right
    corners of the tile."""
    depth, side, gap = 62, 188, 8
    left, top = x + depth + gap, y + depth + gap
    drawing.text(x, y - 12, "1  the problem", size=13, weight="bold")
    drawing.rect(x, top, depth, side, WHITE, stroke=SOFT)
    drawing.rect(left, y, side, depth, WHITE, stroke=SOFT)
    drawing.rect(left, top, side, side, WHITE, stroke=SOFT)
    rows, columns = SIZE // TILE_M, SIZE // TILE_N
    high, wide = side / rows, side / columns
    for row in range(1, rows):
        drawing.line(left, top + row * high, left + side, top + row * high, stroke=GRID, width=0.7)
    for column in range(1, columns):
        drawing.line(left + column * wide, top, left + column * wide, top + side, stroke=GRID, width=0.7)
    row, column = 9, 10
    drawing.rect(x, top + row * high, depth, high, ORANGE)
    drawing.rect(left + column * wide, y, wide, depth, ORANGE)
    drawing.rect(left + column * wide, top + row * high, wide, high, RED)
    drawing.text(x + depth / 2, top + 130, "A", size=14, anchor="middle", weight="bold")
    drawing.text(x + depth / 2, top + 148, "M × K", size=12, fill=SOFT, anchor="middle")
    drawing.text(left + 54, y + 28, "Bᵀ", size=14, anchor="middle", weight="bold")
    drawing.text(left + 54, y + 46, "K × N", size=12, fill=SOFT, anchor="middle")
    drawing.text(left + 54, top + 130, "D", size=14, anchor="middle", weight="bold")
    drawing.text(left + 54, top + 148, "M × N", size=12, fill=SOFT, anchor="middle")
    drawing.text(x, top + side + 20, f"D is cut into {tiles()} CTA tiles of {TILE_M} × {TILE_N}.", size=12)
    drawing.text(x, top + side + 37, "One CTA computes one tile at a time.", size=12)
    right = left + (column + 1) * wide
    return (right, top + row * high), (right, top + (row + 1) * high)


def draw_tile(drawing, x, y, corners):
    """One CTA tile with the k-tiles of its operands, and lines to it from `corners`."""
    scale, cut, shown, gap = 0.92, 26, 4, 8
    wide, high = TILE_N * scale, TILE_M * scale
    left, top = x + shown * cut + gap, y + shown * cut + gap
    for (from_x, from_y), to_y in zip(corners, (top, top + high)):
        drawing.line(from_x, from_y, left, to_y, stroke=RED, dashes="3 3")
    drawing.text(x, y - 12, "2  one CTA tile", size=13, weight="bold")
    for i in range(shown):
        words = str(i) if i < shown - 1 else "…"
        fill = LIGHT[ORANGE] if i == 1 else WHITE
        drawing.rect(x + i * cut, top, cut, high, fill, stroke=ORANGE)
        drawing.rect(left, y + i * cut, wide, cut, fill, stroke=ORANGE)
        drawing.text(x + (i + 0.5) * cut, top + high / 2 + 4, words, size=12, anchor="middle")
        drawing.text(left + wide / 2, y + (i + 0.5) * cut + 4, f"k-tile {words}" if i < shown - 1 else words, size=12, anchor="middle")
    for index in range(WARPGROUPS):
        begin = top + index * high / WARPGROUPS
        drawing.rect(left, begin, wide, high / WARPGROUPS, LIGHT[ROLES[index]], stroke=ROLES[index], stroke_width=1.5)
        drawing.text(left + wide / 2, begin + 26, f"warpgroup {index}: {ROWS} × {TILE_N}", size=13, anchor="middle", weight="bold")
        drawing.text(left + wide / 2, begin + 44, f"rows {index * ROWS} to {(index + 1) * ROWS - 1} of the tile", size=12, fill=SOFT,
                     anchor="middle")
    drawing.text(x, top + high + 20, f"K is cut into {SIZE // TILE_K} k-tiles of {TILE_K}. One k-tile of both operands", size=12)
    drawing.text(x, top + high + 37, f"is {2 * TILE_K * (TILE_M + TILE_N) // 1024} KB in shared memory. Its Bᵀ serves both warpgroups.",
                 size=12)


def draw_wgmma(drawing, x, y):
    """One warpgroup and one k-tile: slabs of 16, one wgmma each."""
    slabs = TILE_K // WGMMA_K
    high, deep, wide = 74, 74, 250
    drawing.text(x, y - 12, "3  one k-tile in warpgroup 0: both operands are in shared memory", size=13, weight="bold")
    middle = y + 40 + high / 2
    drawing.rect(x, y + 40, deep, high, WHITE, stroke=BLUE)
    for slab in range(slabs):
        drawing.rect(x + slab * deep / slabs, y + 40, deep / slabs, high, LIGHT[ORANGE] if slab == 0 else WHITE, stroke=ORANGE)
        drawing.text(x + (slab + 0.5) * deep / slabs, middle + 4, str(slab), size=12, anchor="middle")
    left = x + deep + 28
    drawing.text(x + deep + 14, middle + 6, "×", size=18, anchor="middle")
    for slab in range(slabs):
        drawing.rect(left, y + 40 + slab * high / slabs, wide, high / slabs, LIGHT[ORANGE] if slab == 0 else WHITE, stroke=ORANGE)
        drawing.text(left + wide / 2, y + 40 + (slab + 0.5) * high / slabs + 4, f"slab {slab}", size=12, anchor="middle")
    begin = left + wide + 34
    drawing.arrow(left + wide + 6, middle, begin - 5, middle, stroke=INK)
    drawing.rect(begin, y + 40, wide, high, LIGHT[BLUE], stroke=BLUE, stroke_width=1.5)
    drawing.text(begin + wide / 2, middle - 4, f"accumulators: {ROWS} × {TILE_N}", size=13, anchor="middle", weight="bold")
    drawing.text(begin + wide / 2, middle + 15, f"{accumulators_per_thread()} fp32 registers per thread", size=12, fill=SOFT, anchor="middle")
    for centre, first, second in ((x + deep / 2, "A", f"{ROWS} × {TILE_K}"), (left + wide / 2, "Bᵀ", f"{TILE_K} × {TILE_N}")):
        drawing.text(centre, y + 16, first, size=13, anchor="middle", weight="bold")
        drawing.text(centre, y + 32, second, size=12, fill=SOFT, anchor="middle")
    drawing.text(begin + wide / 2, y + 32, "in registers, for the whole tile", size=12, fill=SOFT, anchor="middle")
    drawing.text(x, y + 40 + high + 22, f"One wgmma (m{ROWS}n{TILE_N}k{WGMMA_K}) multiplies slab i of A by slab i of Bᵀ and adds to the accumulators: "
                 f"{slabs} per k-tile.", size=12)


def draw():
    drawing = Drawing(760, 590, "How a GEMM is cut, from D down to one wgmma",
                      "D is cut into CTA tiles, a CTA tile into the rows of its warpgroups, K into k-tiles, and a k-tile into slabs of 16, "
                      "one wgmma each.")
    drawing.caption("From D down to one wgmma",
                    f"M and N are cut into tiles and warpgroups, K into k-tiles and slabs. The numbers are those of step 15 at {SIZE}³.", room=46)
    draw_tile(drawing, 360, 92, draw_problem(drawing, 20, 92))
    draw_wgmma(drawing, 20, 430)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
