#!/usr/bin/env python3
"""Draws the same tiles as data-parallel and as stream-K tiles on four SMs: docs/figures/stream_k.svg.

The division, and what passing partials costs, are those of common/gemm/schedule/decomposition.h.
"""
from drawing import Drawing, ROOT, figure_program
import collections

import packed_json
from palette import CHUNKS, INK, PURPLE, RED, SOFT, WHITE

FIGURE = "docs/figures/stream_k.svg"
RUNS = "docs/figures/runs.json.xz"  # by tools/figures/record_runs.py, with tools/play stream_k
TILES, K_TILES = 5, 64
LEFT, SCALE, ROW, HIGH = 66, 5.2, 40, 26  # SCALE: pixels for a k-tile
COLORS = [CHUNKS[0], CHUNKS[1], CHUNKS[2], CHUNKS[4], CHUNKS[6]]

Event = collections.namedtuple("Event", "what begin end tile first last")  # k-tiles first to last - 1 of a tile


def recorded():
    return next(run for run in packed_json.read(ROOT / RUNS)["stream_k"] if (run["tiles"], run["k_tiles"]) == (TILES, K_TILES))


def workers(run, name):
    """The events of each worker; times are in k-tiles."""
    found = next(one for one in run["divisions"] if one["name"] == name)
    return [[Event(*event) for event in worker] for worker in found["workers"]]


def end_of(division):
    return max(events[-1].end for events in division)


def draw_division(drawing, y, division, last):
    """A row for each SM; one that ends before `last` is idle until then."""
    for worker, events in enumerate(division):
        top = y + ROW * worker
        drawing.text(LEFT - 10, top + 18, f"SM {worker}", size=12, anchor="end")
        for event in events:
            x, wide = LEFT + SCALE * event.begin, SCALE * (event.end - event.begin)
            if event.what == "multiply":
                drawing.rect(x, top, wide, HIGH, COLORS[event.tile], stroke=SOFT)
                part = "" if event.last - event.first == K_TILES else f": {event.first}–{event.last - 1}"
                words = f"tile {event.tile}{part}"
                if wide < 6.4 * len(words) + 4:
                    words = f"tile {event.tile}"
                drawing.text(x + wide / 2, top + 17, words, size=12, anchor="middle")
            else:
                drawing.rect(x, top, wide, HIGH, RED if event.what == "store" else PURPLE)
        ended = events[-1].end
        if ended < last:
            drawing.rect(LEFT + SCALE * ended, top, SCALE * (last - ended), HIGH, WHITE, stroke=SOFT, dashes="4 4")
            drawing.text(LEFT + SCALE * (ended + last) / 2, top + 17, "idle", size=12, fill=SOFT, anchor="middle")


def draw_partials(drawing, y, division, fix_up):
    """From each store of partials to the fix-up that adds them, one row below."""
    for worker, events in enumerate(division):
        for store in (event for event in events if event.what == "store"):
            for other, targets in enumerate(division):
                for target in (event for event in targets if event.what == "fix up" and event.tile == store.tile):
                    x1, x2 = LEFT + SCALE * (store.begin + store.end) / 2, LEFT + SCALE * (target.begin + fix_up / 2)
                    bend = y + ROW * worker + HIGH + 5
                    drawing.polyline([(x1, y + ROW * worker + HIGH), (x1, bend), (x2, bend)], RED, width=1.5)
                    drawing.arrow(x2, bend, x2, y + ROW * other, stroke=RED)


def draw_end(drawing, y, height, clocks, words):
    x = LEFT + SCALE * clocks
    drawing.line(x, y - 6, x, y + height - 8, stroke=INK, width=1.5)
    drawing.text(x, y + height + 8, words, size=12, anchor="end", weight="bold")


def draw():
    run = recorded()
    store, fix_up, sms = round(run["store"]), round(run["fixup"]), run["workers"]
    data_parallel, stream_k = workers(run, "data-parallel"), workers(run, "stream-K")
    whole, cut = round(end_of(data_parallel)), round(end_of(stream_k))
    each, height = TILES * K_TILES // sms, ROW * sms
    drawing = Drawing(760, 512, "Data-parallel and stream-K",
                      f"{TILES} tiles of {K_TILES} k-tiles on {sms} SMs. With whole tiles three SMs are idle while one multiplies the last tile. With stream-K "
                      "every SM multiplies as many k-tiles, and the tiles that are cut are fixed up from partials.")
    drawing.caption(f"The same {TILES} tiles on {sms} SMs: whole tiles, and equal ranges of K",
                    f"Each tile has {K_TILES} k-tiles. Whole tiles make two waves, and the second one has a single tile. Stream-K gives every SM {each} "
                    "k-tiles; a tile that is cut needs a fix-up. Time runs to the right.", room=64)
    top = 104
    drawing.text(20, top - 14, "data-parallel", size=13, weight="bold")
    draw_division(drawing, top, data_parallel, whole)
    draw_end(drawing, top, height, whole, f"ends after {whole} k-tiles")
    top += height + 52
    drawing.text(20, top - 14, "stream-K", size=13, weight="bold")
    draw_division(drawing, top, stream_k, 0)  # their small rest is not drawn
    draw_partials(drawing, top, stream_k, fix_up)
    draw_end(drawing, top, height, cut, f"ends after {cut} k-tiles")
    y = top + height + 34
    drawing.rect(20, y - 10, 11, 11, RED)
    drawing.text(37, y, f"Partials of a tile's first part are stored. The model of step 18 counts {store} k-tiles for that.", size=12)
    drawing.rect(20, y + 8, 11, 11, PURPLE)
    drawing.text(37, y + 18, f"Fix-up: the SM with the last part of a tile adds its peer's partials ({fix_up} k-tiles) and stores the tile.", size=12)
    drawing.text(20, y + 40, f"SM 1 and SM 2 are the busiest: {each} + {store} + {fix_up} = {cut}. An SM does its range from the end to the beginning, so partials", size=12)
    drawing.text(20, y + 56, "are stored long before they are added. \"tile 2: 32–63\" stands for k-tiles 32 to 63 of tile 2.", size=12)
    drawing.height = y + 72
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
