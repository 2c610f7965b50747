#!/usr/bin/env python3
"""Draws the way of a subtile from the accumulators to D: docs/figures/epilogue_path.svg.

It is the way of store_tile in step 15, with its tile of 128 × 256.
"""
from drawing import Drawing, figure_program
from palette import BLUE, GREEN, INK, LIGHT, ORANGE, PURPLE, RED, SOFT, WHITE

FIGURE = "docs/figures/epilogue_path.svg"
TILE_M, TILE_N, WARPGROUPS = 128, 256, 2
SUBTILE, BUFFERS = 64, 2  # rows and columns of a subtile; buffers for each warpgroup
THREADS, WARPS = 128, 4
LEFT, WIDE, MIDDLE, RIGHT = 20, 190, 232, 470


def facts():
    rows = TILE_M // WARPGROUPS
    per_thread = SUBTILE * SUBTILE // THREADS
    return {"rows": rows, "accumulators": rows * TILE_N // THREADS, "subtiles": TILE_N // SUBTILE * (rows // SUBTILE),
            "per_thread": per_thread, "pairs": per_thread // 2, "stmatrix": per_thread // 2 // 4, "kilobytes": 2 * SUBTILE * SUBTILE // 1024,
            "row_bytes": 2 * SUBTILE}


def steps(fact):
    """(y, number, what, by whom, two lines on who waits) of every step."""
    others = THREADS - 1
    return [(204, "wait_group.read 1", "thread 0 of the warpgroup", "Thread 0 waits until the copy engine has", "read what buffer b held before."),
            (244, f"bar.sync of {THREADS} threads", "the warpgroup", f"The other {others} threads wait for thread 0.", "Now every thread may write buffer b."),
            (284, "cvt.rn.bf16x2", f"each thread: {fact['per_thread']} values, {fact['pairs']} registers", "Nobody waits.", ""),
            (324, "stmatrix.x4", f"{fact['stmatrix']} per warp, each 16 × 16 elements", "Nobody waits.", ""),
            (430, "fence.proxy.async", "each thread, after its own writes", "Nobody waits. The fence covers what", "this thread itself has written."),
            (478, f"bar.sync of {THREADS} threads", "the warpgroup", f"Thread 0 waits for the other {others} threads.",
             "All have written, and all have fenced."),
            (518, "TMA store, commit_group", "thread 0", "Nobody waits. The warpgroup goes on", "with the other buffer."),
            (602, "reads b, writes lines of D", "the copy engine, by itself", "Nobody waits. The engine undoes the swizzle", "and clips what lies beyond the edge of D."),
            (690, "wait_group 0", "thread 0, before the CTA ends", "Thread 0 waits until the last stores are", "done, because they read shared memory.")]


def draw():
    fact = facts()
    drawing = Drawing(760, 722, "The path of an epilogue",
                      "From accumulator registers through rounding, stmatrix, swizzled shared memory, a proxy fence, a barrier and a TMA store to D in "
                      "global memory, with the threads that execute each instruction and those that wait.")
    drawing.caption("The path of an epilogue: from the accumulators to D",
                    f"In step 15 a warpgroup's part of a tile leaves in subtiles of {SUBTILE} × {SUBTILE}, through {BUFFERS} buffers. Threads write a buffer and the copy engine "
                    "reads it, so a fence and a barrier come between the two. No tile waits until D has been written.", room=82)
    for x, words in ((LEFT, "where the data is"), (MIDDLE, "the instruction, and by whom"), (RIGHT, "who waits for what")):
        drawing.text(x, 108, words, size=12, weight="bold")
    drawing.line(LEFT, 116, 740, 116, stroke=SOFT)
    axis = LEFT + WIDE / 2
    for begin, end, color in ((174, 354, BLUE), (412, 548, BLUE), (582, 622, ORANGE)):
        drawing.arrow(axis, begin, axis, end, stroke=color, width=2.5)
    drawing.line(LEFT, 453, 740, 453, stroke=RED, width=1.5, dashes="6 4")
    drawing.text(LEFT, 447, "generic proxy", size=11, fill=RED)
    drawing.text(LEFT, 466, "async proxy", size=11, fill=RED)
    drawing.box(LEFT, 126, WIDE, 46, BLUE, ["registers", f"{fact['rows']} × {TILE_N} accumulators"], LIGHT[BLUE])
    drawing.text(MIDDLE, 145, f"{fact['accumulators']} accumulators per thread in fp32. A subtile takes {fact['per_thread']} of them, so a", size=12, fill=SOFT)
    drawing.text(MIDDLE, 162, f"warpgroup goes through numbers 1 to 7 for each of {fact['subtiles']} subtiles.", size=12, fill=SOFT)
    drawing.box(LEFT, 356, WIDE, 54, INK, ["shared memory", f"buffer b: {fact['kilobytes']} KB, swizzled"])
    drawing.text(MIDDLE, 380, f"A row is {SUBTILE} elements of bf16, {fact['row_bytes']} bytes. Unit u (16 bytes) of row r is", size=12, fill=SOFT)
    drawing.text(MIDDLE, 397, "at place u ^ (r % 8), so unit u of eight rows is in eight groups of banks.", size=12, fill=SOFT)
    drawing.box(LEFT, 550, WIDE, 30, ORANGE, ["copy engine"], LIGHT[ORANGE])
    drawing.box(LEFT, 624, WIDE, 46, GREEN, ["global memory", "D in bf16"], LIGHT[GREEN])
    for number, (y, what, whom, *waits) in enumerate(steps(fact), 1):
        drawing.circle(axis, y - 2, 10, INK, stroke=WHITE)
        drawing.text(axis, y + 2, str(number), size=12, fill=WHITE, anchor="middle", weight="bold")
        drawing.text(MIDDLE, y - 4, what, size=12, weight="bold")
        drawing.text(MIDDLE, y + 12, whom, size=12, fill=SOFT)
        for index, words in enumerate(waits):
            if words:
                drawing.text(RIGHT, y - 4 + 16 * index, words, size=12, fill=SOFT if waits[0].startswith("Nobody") else PURPLE)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
