#!/usr/bin/env python3
"""Draws tensor memory with two accumulators, and who reads and writes it: docs/figures/tensor_memory.svg.

The allocation and the roles are those of step 73, variant 128x256.
"""
from drawing import Drawing, figure_program
from palette import BLUE, GREEN, INK, LIGHT, ORANGE, SOFT, WHITE

FIGURE = "docs/figures/tensor_memory.svg"
LANES, COLUMNS, WARPS = 128, 512, 4
TILE_M, TILE_N, ACCUMULATORS = 128, 256, 2
LOADED = 32  # columns that one tcgen05.ld of the kernels loads
PROGRESS = [96, 64, 96, 32]  # where each warp is in accumulator 0, in the moment that is drawn
EPILOGUE, ISSUER = "warps 0 to 3", "warp 4, one thread"
LEFT, TOP, HIGH = 132, 208, 1.5  # HIGH: pixels for a lane; a column is a pixel wide


def address(lane, column):
    """As tcgen05 instructions take it (tensor_memory_address in common/ptx/tcgen05_descriptor.h)."""
    return lane << 16 | column


def draw():
    quarter, height = LANES // WARPS, HIGH * LANES
    drawing = Drawing(760, 540, "Tensor memory with two accumulators",
                      "Tensor memory of an SM: 128 lanes and 512 columns. The issuer multiplies into one accumulator of 256 columns while four warps read "
                      "the other, each its own 32 lanes; two pairs of mbarriers hand the accumulators over.")
    drawing.caption(f"Tensor memory: {LANES} lanes × {COLUMNS} columns, and two accumulators in it",
                    f"One thread issues multiplications into accumulator 1 while four warps read accumulator 0. Row i of the tile is lane i, and a warp "
                    f"reaches only its own {quarter} lanes.", room=64)
    right, bottom = LEFT + COLUMNS, TOP + height
    # The two roles, and what hands an accumulator from one to the other.
    drawing.box(20, 86, 190, 48, BLUE, ["epilogue", EPILOGUE], LIGHT[BLUE])
    drawing.box(550, 86, 190, 48, ORANGE, ["issuer", ISSUER], LIGHT[ORANGE])
    drawing.text(380, 92, "tcgen05.commit → accumulator_full[a]: 1 arrival", size=12, anchor="middle")
    drawing.arrow(548, 98, 212, 98, stroke=ORANGE, width=2)
    drawing.arrow(212, 124, 548, 124, stroke=BLUE, width=2)
    drawing.text(380, 141, f"after wait::ld → accumulator_empty[a]: {WARPS} arrivals", size=12, anchor="middle")
    # Tensor memory.
    for index in range(ACCUMULATORS):
        x = LEFT + TILE_N * index
        drawing.rect(x, TOP, TILE_N, height, LIGHT[GREEN] if index else WHITE, stroke=INK, stroke_width=1.5)
    for warp in range(WARPS):
        top = TOP + HIGH * quarter * warp
        drawing.rect(LEFT + PROGRESS[warp], top + 1, LOADED, HIGH * quarter - 2, LIGHT[BLUE], stroke=BLUE)
        if warp:
            drawing.line(LEFT, top, right, top, stroke=SOFT, dashes="4 4")
        drawing.box(20, top + 8, 74, 32, BLUE, [f"warp {warp}"], LIGHT[BLUE])
        drawing.arrow(LEFT + PROGRESS[warp], top + 24, 96, top + 24, stroke=BLUE, width=2)
        drawing.text(right + 8, top + 28, f"lanes {quarter * warp}–{quarter * (warp + 1) - 1}", size=12, fill=SOFT)
    drawing.text(LEFT + 190, TOP + 21, "accumulator 0", size=13, anchor="middle", weight="bold")
    drawing.text(LEFT + 190, TOP + 38, "the warps read it", size=12, fill=SOFT, anchor="middle")
    drawing.text(LEFT + TILE_N + 128, TOP + 21, "accumulator 1", size=13, anchor="middle", weight="bold")
    drawing.text(LEFT + TILE_N + 128, TOP + 38, "the issuer adds to it", size=12, fill=SOFT, anchor="middle")
    drawing.arrow(600, 136, 600, TOP - 2, stroke=ORANGE, width=2.5)
    drawing.text(590, 164, f"tcgen05.mma, {TILE_M} × {TILE_N} × 16:", size=12, anchor="end", weight="bold")
    drawing.text(590, 181, "adds A · Bᵀ from shared memory", size=12, fill=SOFT, anchor="end")
    drawing.text(20, 164, f"tcgen05.ld: {LOADED} columns of a lane", size=12, weight="bold")
    drawing.text(20, 181, f"into {LOADED} registers of a thread", size=12, fill=SOFT)
    for column in range(0, COLUMNS + 1, TILE_N):
        drawing.line(LEFT + column, bottom, LEFT + column, bottom + 6, stroke=SOFT)
        drawing.text(LEFT + column, bottom + 20, f"{column}", size=12, fill=SOFT, anchor="middle")
    drawing.text(LEFT + 128, bottom + 20, "columns", size=12, fill=SOFT, anchor="middle")
    y = bottom + 46
    lane, column = 64, TILE_N + 10
    for words in (f"{LANES} lanes × {COLUMNS} columns × 4 bytes = {LANES * COLUMNS * 4 // 1024} KB per SM. One warp allocates all {COLUMNS} columns with one tcgen05.alloc,",
                  f"which takes a power of 2 from 32 to {COLUMNS}. Accumulator a begins at column {TILE_N} · a. An address has the lane in its",
                  f"upper 16 bits and the column in its lower 16 bits: lane {lane}, column {column} is 0x{address(lane, column):08x}. After each wait at an",
                  "mbarrier the issuer and the epilogue execute tcgen05.fence::after_thread_sync. Shared memory holds A and B only."):
        drawing.text(20, y, words, size=12)
        y += 18
    drawing.height = y + 4
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
