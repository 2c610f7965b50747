#!/usr/bin/env python3
"""Draws a cooperative and a ping-pong kernel in time: docs/figures/timelines.svg.

Usage: tools/figures/draw_timelines.py [--check]

The times are those of a model, not of a measurement. A k-tile takes as many clocks as its multiply-adds at full rate,
a subtile of the epilogue as many as its bytes at EPILOGUE_RATE; copies arrive in time, barriers cost nothing. Roles and
waits are those of steps 16 and 17. --check draws nothing and fails when the committed figure is not what this script
draws.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import dataclasses

from drawing import Drawing, figure_program
from figures import BLUE, GREEN, GRID, INK, ORANGE, SOFT

FIGURE = "docs/figures/timelines.svg"
RATE = 2048          # multiply-adds of an SM in a clock
EPILOGUE_RATE = 32   # bytes of D that an SM stores in a clock: an assumption, see the page
TILE_K = 64
STAGES = 4
K_TILES = 8          # K = 512
LIGHT = {BLUE: "#dbe7f3", GREEN: "#dcecd9"}
CONSUMER = [BLUE, GREEN]


@dataclasses.dataclass
class Span:
    """What one role does from when to when; `tile` counts the CTA's tiles."""
    row: str
    begin: int
    end: int
    tile: int


def k_tile_clocks(tile_m, tile_n):
    return tile_m * tile_n * TILE_K // RATE


def epilogue_clocks(tile_m, tile_n):
    return 2 * tile_m * tile_n // EPILOGUE_RATE


def cooperative(tile_m, tile_n, tiles):
    """Both consumers multiply each tile, then both store it. Returns the spans and the ends of all k-tiles."""
    spans, ends, now = [], [], 0
    for tile in range(tiles):
        begin = now
        for _ in range(K_TILES):
            now += k_tile_clocks(tile_m, tile_n)
            ends.append(now)
        stored = now + epilogue_clocks(tile_m, tile_n)
        spans.append(Span("tensor cores", begin, now, tile))
        for consumer in range(2):
            spans += [Span(f"consumer {consumer}", begin, now, tile), Span(f"epilogue {consumer}", now, stored, tile)]
        now = stored
    return spans, ends


def ping_pong(tile_m, tile_n, tiles):
    """One consumer at a time multiplies, and one at a time stores."""
    spans, ends = [], []
    multiplied, stored = 0, 0  # until when the mainloop, and the epilogue, is taken
    free = [0, 0]
    for tile in range(tiles):
        consumer = tile % 2
        begin = max(multiplied, free[consumer])
        ends += [begin + (i + 1) * k_tile_clocks(tile_m, tile_n) for i in range(K_TILES)]
        multiplied = ends[-1]
        store = max(multiplied, stored)
        stored = free[consumer] = store + epilogue_clocks(tile_m, tile_n)
        spans += [Span("tensor cores", begin, multiplied, tile), Span(f"consumer {consumer}", begin, multiplied, tile),
                  Span(f"epilogue {consumer}", store, stored, tile)]
    return spans, ends


def busy(spans):
    """The tensor cores' share of the time."""
    return sum(span.end - span.begin for span in spans if span.row == "tensor cores") / max(span.end for span in spans)


ROWS = ["producer", "consumer 0", "consumer 1", "tensor cores"]
LEFT, WIDTH, ROW = 110, 860, 34
CLOCKS = 41000


def panel(drawing, top, title, result, color_of):
    spans, ends = result
    scale = WIDTH / CLOCKS
    drawing.text(LEFT, top, title, size=13, weight="bold")
    for index, name in enumerate(ROWS):
        y = top + 14 + ROW * index
        drawing.text(LEFT - 10, y + 18, name, size=12, anchor="end")
        drawing.line(LEFT, y + 28, LEFT + WIDTH, y + 28, stroke=GRID)
    # A copy is issued when its stage is free: at once for the first ones, then when the k-tile that was there is done.
    for number in range(len(ends)):
        x = LEFT + scale * (0 if number < STAGES else ends[number - STAGES])
        x += 2.5 * number if number < STAGES else 0  # the first ones beside each other
        color = color_of(number // K_TILES)
        drawing.rect(x, top + 22, 1.6, 18, color)
    for span in spans:
        x, width = LEFT + scale * span.begin, scale * (span.end - span.begin)
        if span.row == "tensor cores":
            drawing.rect(x, top + 20 + ROW * 3, width, 20, color_of(span.tile), stroke="#ffffff")
            drawing.text(x + width / 2, top + 34 + ROW * 3, f"tile {span.tile}", size=11, fill="#ffffff", anchor="middle")
            continue
        consumer = int(span.row[-1])
        y = top + 20 + ROW * (1 + consumer)
        if span.row.startswith("epilogue"):
            drawing.rect(x, y, width, 20, ORANGE, stroke="#ffffff")
            if width > 26:
                drawing.text(x + width / 2, y + 14, "store", size=10, fill="#ffffff", anchor="middle")
        else:
            color = color_of(span.tile)
            drawing.rect(x, y, width, 20, LIGHT[color], stroke=color)
            drawing.text(x + width / 2, y + 14, f"multiplies tile {span.tile}", size=11, fill=INK, anchor="middle")


def draw():
    drawing = Drawing(LEFT + WIDTH + 20, 424, "A cooperative and a ping-pong kernel in time",
                      "Two timelines of one SM: with cooperative consumers the tensor cores stop during every epilogue; with "
                      "ping-pong one consumer multiplies while the other stores.")
    both = cooperative(128, 256, 4)
    alternate = ping_pong(128, 192, 6)
    drawing.text(LEFT, 24, f"One SM, K = {K_TILES * TILE_K}, by the model on this page", size=13, fill=SOFT)
    panel(drawing, 54, f"Cooperative (step 16): tiles of 128 × 256, tensor cores busy {100 * busy(both[0]):.0f} % of the time",
          both, lambda tile: BLUE)
    panel(drawing, 230, f"Ping-pong (step 17): tiles of 128 × 192, tensor cores busy {100 * busy(alternate[0]):.0f} %, the first "
          "and the last tile included", alternate, lambda tile: CONSUMER[tile % 2])
    y = 396
    for clocks in range(0, CLOCKS, 10000):
        x = LEFT + WIDTH * clocks / CLOCKS
        drawing.line(x, y - 12, x, y - 6, stroke=SOFT)
        drawing.text(x, y + 6, f"{clocks}" if clocks else "0 clocks", size=11, fill=SOFT, anchor="middle")
    drawing.text(LEFT, y + 22, "producer: a mark is a k-tile whose copies are issued, when its stage is free; orange: the "
                 "epilogue, with its stores", size=11, fill=SOFT)
    return drawing.svg()


if __name__ == "__main__":
    sys.exit(figure_program("tools/figures/draw_timelines.py", __doc__, lambda: {FIGURE: draw}))
