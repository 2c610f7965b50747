#!/usr/bin/env python3
"""Draws the same tiles as data-parallel and as stream-K tiles on four SMs: docs/figures/stream_k.svg.

The division, and what passing partials costs, are those of common/gemm/schedule/decomposition.h.
"""
from drawing import Drawing, figure_program
import collections

from palette import CHUNKS, INK, PURPLE, RED, SOFT, WHITE

FIGURE = "docs/figures/stream_k.svg"
TILES, K_TILES, SMS = 5, 64, 4
STORE, FIX_UP = 8, 5  # k-tiles that it takes to store partials and be waited for, and to add those of one slot
LEFT, SCALE, ROW, HIGH = 66, 5.2, 40, 26  # SCALE: pixels for a k-tile
COLORS = [CHUNKS[0], CHUNKS[1], CHUNKS[2], CHUNKS[4], CHUNKS[6]]

WorkTile = collections.namedtuple("WorkTile", "tile begin end")  # some k-tiles of one tile, begin to end - 1


def data_parallel(worker):
    return [WorkTile(tile, 0, K_TILES) for tile in range(worker, TILES, SMS)]


def stream_k(worker):
    """The work tiles of a worker's range, in the order in which it does them: from the end of the range to its beginning."""
    length, longer = divmod(TILES * K_TILES, SMS)
    begin = length * worker + min(worker, longer)
    end = begin + length + (worker < longer)
    work = []
    while begin < end:
        tile = (end - 1) // K_TILES
        first = max(begin, tile * K_TILES)
        work.append(WorkTile(tile, first - tile * K_TILES, end - tile * K_TILES))
        end = first
    return work


def timeline(worker, division):
    """[(begin, end, what, work tile)] of a worker, in k-tiles."""
    now, events = 0, []
    for work in division(worker):
        events.append((now, now + work.end - work.begin, "multiply", work))
        now = events[-1][1]
        if work.end < K_TILES:
            events.append((now, now + STORE, "store", work))
            now += STORE
        elif work.begin > 0:
            peers = sum(any(other.tile == work.tile for other in division(peer)) for peer in range(worker))
            events.append((now, now + FIX_UP * peers, "fix up", work))
            now += FIX_UP * peers
    return events


def end_of(division):
    return max(timeline(worker, division)[-1][1] for worker in range(SMS))


def draw_division(drawing, y, division, last):
    """A row for each SM; idle until `last`. Returns where the stores and the fix-ups are."""
    for worker in range(SMS):
        top = y + ROW * worker
        drawing.text(LEFT - 10, top + 18, f"SM {worker}", size=12, anchor="end")
        events = timeline(worker, division)
        for begin, end, what, work in events:
            x, wide = LEFT + SCALE * begin, SCALE * (end - begin)
            if what == "multiply":
                drawing.rect(x, top, wide, HIGH, COLORS[work.tile], stroke=SOFT)
                part = "" if work.end - work.begin == K_TILES else f": {work.begin}–{work.end - 1}"
                words = f"tile {work.tile}{part}"
                if wide < 6.4 * len(words) + 4:
                    words = f"tile {work.tile}"
                drawing.text(x + wide / 2, top + 17, words, size=12, anchor="middle")
            else:
                drawing.rect(x, top, wide, HIGH, RED if what == "store" else PURPLE)
        ended = events[-1][1]
        if division is data_parallel and ended < last:
            drawing.rect(LEFT + SCALE * ended, top, SCALE * (last - ended), HIGH, WHITE, stroke=SOFT, dashes="4 4")
            drawing.text(LEFT + SCALE * (ended + last) / 2, top + 17, "idle", size=12, fill=SOFT, anchor="middle")


def draw_partials(drawing, y):
    """From each store of partials to the fix-up that adds them, one row below."""
    for worker in range(SMS):
        for begin, end, what, work in timeline(worker, stream_k):
            if what != "store":
                continue
            for other in range(SMS):
                for start, _, kind, target in timeline(other, stream_k):
                    if kind == "fix up" and target.tile == work.tile:
                        x1, x2 = LEFT + SCALE * (begin + end) / 2, LEFT + SCALE * (start + FIX_UP / 2)
                        bend = y + ROW * worker + HIGH + 5
                        drawing.polyline([(x1, y + ROW * worker + HIGH), (x1, bend), (x2, bend)], RED, width=1.5)
                        drawing.arrow(x2, bend, x2, y + ROW * other, stroke=RED)


def draw_end(drawing, y, clocks, words):
    x = LEFT + SCALE * clocks
    drawing.line(x, y - 6, x, y + ROW * SMS - 8, stroke=INK, width=1.5)
    drawing.text(x, y + ROW * SMS + 8, words, size=12, anchor="end", weight="bold")


def draw():
    whole, cut = end_of(data_parallel), end_of(stream_k)
    each = TILES * K_TILES // SMS
    drawing = Drawing(760, 512, "Data-parallel and stream-K",
                      f"{TILES} tiles of {K_TILES} k-tiles on {SMS} SMs. With whole tiles three SMs are idle while one multiplies the last tile. With stream-K "
                      "every SM multiplies as many k-tiles, and the tiles that are cut are fixed up from partials.")
    drawing.caption(f"The same {TILES} tiles on {SMS} SMs: whole tiles, and equal ranges of K",
                    f"Each tile has {K_TILES} k-tiles. Whole tiles make two waves, and the second one has a single tile. Stream-K gives every SM {each} "
                    "k-tiles; a tile that is cut needs a fix-up. Time runs to the right.", room=64)
    top = 104
    drawing.text(20, top - 14, "data-parallel", size=13, weight="bold")
    draw_division(drawing, top, data_parallel, whole)
    draw_end(drawing, top, whole, f"ends after {whole} k-tiles")
    top += ROW * SMS + 52
    drawing.text(20, top - 14, "stream-K", size=13, weight="bold")
    draw_division(drawing, top, stream_k, whole)
    draw_partials(drawing, top)
    draw_end(drawing, top, cut, f"ends after {cut} k-tiles")
    y = top + ROW * SMS + 34
    drawing.rect(20, y - 10, 11, 11, RED)
    drawing.text(37, y, f"Partials of a tile's first part are stored. The model of step 18 counts {STORE} k-tiles for that.", size=12)
    drawing.rect(20, y + 8, 11, 11, PURPLE)
    drawing.text(37, y + 18, f"Fix-up: the SM with the last part of a tile adds its peer's partials ({FIX_UP} k-tiles) and stores the tile.", size=12)
    drawing.text(20, y + 40, f"SM 1 and SM 2 are the busiest: {each} + {STORE} + {FIX_UP} = {cut}. An SM does its range from the end to the beginning, so partials", size=12)
    drawing.text(20, y + 56, "are stored long before they are added. \"tile 2: 32–63\" stands for k-tiles 32 to 63 of tile 2.", size=12)
    drawing.height = y + 72
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
