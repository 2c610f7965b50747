#!/usr/bin/env python3
"""Draws a cooperative and a ping-pong kernel in time, tile by tile: docs/figures/timelines.svg.

The times are those of the traces that docs/figures/traces/17.svg shows k-tile by k-tile; tools/figures/draw_trace.py says
where they come from.
"""
import draw_trace
import dataclasses

from drawing import Drawing, figure_program
from palette import ACTIVITY, DARK, GREEN, GRID, INK, LIGHT, SOFT, WHITE
from records import ROOT

FIGURE = "docs/figures/timelines.svg"
TRACES = [("17.base", "Cooperative", 1), ("17", "Ping-pong", 2)]  # of how many tiles of the CTA a consumer takes one
TILE_COLORS = [GREEN, DARK[GREEN]]  # of even and odd tiles: both are multiplications


@dataclasses.dataclass
class Span:
    """What one role of SM 0 does from when to when; `tile` counts the CTA's tiles."""
    row: str
    kind: str  # multiply or store
    begin: int
    end: int
    tile: int


def spans_of(trace, every):
    """The tiles of SM 0's consumers, and of its tensor cores. A consumer takes one of `every` tiles, the first by its number."""
    found = {}
    for (process, thread), events in draw_trace.tracks(trace).items():
        if not process.startswith("CTA") or draw_trace.sm_of(process) != 0 or not thread.startswith("consumer"):
            continue
        for event in events:
            kind = {"multiply": "multiply", "epilogue": "store", "store": "store"}.get(event["name"])
            if kind:
                number = every * event["args"]["tile"] + int(thread.split()[1]) % every
                key = thread, kind, number
                begin, end = found.get(key, (draw_trace.start_of(event), 0))
                found[key] = min(begin, draw_trace.start_of(event)), max(end, draw_trace.end_of(event))
    spans = [Span(thread, kind, begin, end, tile) for (thread, kind, tile), (begin, end) in found.items()]
    # The groups of a tile come one after the other; a consumer's tile is as many groups as it has k-tiles.
    about = trace["about"]
    k_tiles = int(about["shape"].split("x")[2]) // about["tile"][2]
    tiles = {consumer: sorted({span.tile for span in spans if span.row == consumer}) for consumer in {span.row for span in spans}}
    groups = {}
    for (process, thread), events in draw_trace.tracks(trace).items():
        if process == "SM 0" and thread == "tensor cores":
            for event in events:
                groups.setdefault(f"consumer {event['args']['consumer']}", []).append(event)
    whole = {}
    for consumer, events in groups.items():
        for index, event in enumerate(events):
            tile = tiles[consumer][index // k_tiles]
            begin, end = whole.get(tile, (draw_trace.start_of(event), 0))
            whole[tile] = min(begin, draw_trace.start_of(event)), max(end, draw_trace.end_of(event))
    return spans + [Span("tensor cores", "multiply", begin, end, tile) for tile, (begin, end) in whole.items()]


def gaps(spans):
    """For how many clocks nothing is multiplied between one tile and the next."""
    tiles = sorted((span for span in spans if span.row == "tensor cores"), key=lambda span: span.begin)
    return [max(0, after.begin - before.end) for before, after in zip(tiles, tiles[1:])]


ROWS = ["producer", "consumer 0", "consumer 1", "tensor cores"]
LEFT, WIDTH, ROW = 116, 860, 32


def panel(drawing, top, name, trace, every, scale):
    about = trace["about"]
    spans = spans_of(trace, every)
    rows, columns, _ = about["tile"]
    idle = gaps(spans)
    between = f"{min(idle)} to {max(idle)}" if min(idle) != max(idle) else f"{idle[0]}"
    drawing.text(20, top, f"{name} (step {about['step'][:2]}), tiles of {rows} × {columns}: tensor cores busy "
                 f"{100 * draw_trace.busy(trace):.0f} % of {trace['end']:,} clocks; idle for {between} clocks between two tiles", size=12,
                 weight="bold")
    for index, row in enumerate(ROWS):
        y = top + 12 + ROW * index
        drawing.text(LEFT - 10, y + 18, row, size=12, anchor="end")
        drawing.line(LEFT, y + 28, LEFT + WIDTH, y + 28, stroke=GRID)
    for (process, thread), events in draw_trace.tracks(trace).items():
        if process.startswith("CTA") and draw_trace.sm_of(process) == 0 and thread == "producer":
            for event in events:
                if event["name"] == "issue":
                    drawing.rect(LEFT + scale * draw_trace.start_of(event), top + 18, max(1.6, scale * event["args"]["clocks"]), 18,
                                 ACTIVITY["issue"])
    for span in spans:
        x, width = LEFT + scale * span.begin, scale * (span.end - span.begin)
        y = top + 18 + ROW * ROWS.index(span.row)
        if span.kind == "store":
            drawing.rect(x, y, width, 20, ACTIVITY["store"], stroke=WHITE, stroke_width=0.5)
            continue
        color = TILE_COLORS[span.tile % 2]
        role = span.row != "tensor cores"
        drawing.rect(x, y, width, 20, LIGHT[GREEN] if role else color, stroke=color if role else WHITE)
        drawing.text(x + width / 2, y + 14, f"tile {span.tile}", size=11, fill=INK if role else WHITE, anchor="middle")
    return top + 12 + ROW * len(ROWS)


def draw():
    traces = [(name, draw_trace.model_of(file), every) for file, name, every in TRACES]
    end = max(trace["end"] for _, trace, _ in traces)
    scale = WIDTH / end
    sentence = ("Cooperative consumers share each tile: consumer 1 still multiplies while consumer 0 stores its half, and then the tensor "
                "cores wait for a moment. With ping-pong one consumer stores its tile while the other multiplies the next one, and the "
                "tensor cores never wait.")
    drawing = Drawing(LEFT + WIDTH + 20, 0, "A cooperative and a ping-pong kernel in time", sentence)
    top = drawing.caption("A cooperative and a ping-pong kernel in time", sentence) + 26
    x = 20
    for color, words in ((ACTIVITY["issue"], "the copies of a k-tile are issued"), (LIGHT[GREEN], "a consumer multiplies a tile"),
                         (GREEN, "the tensor cores work on a tile"), (ACTIVITY["store"], "epilogue, store")):
        drawing.rect(x, top - 9, 10, 10, color)
        drawing.text(x + 14, top, words, size=11, fill=SOFT)
        x += 30 + 6.2 * len(words)
    top += 28
    for name, trace, every in traces:
        top = panel(drawing, top, name, trace, every, scale) + 28
    y = top - 22
    for clocks in range(0, end + 1, draw_trace.tick(end)):
        x = LEFT + scale * clocks
        drawing.line(x, y - 8, x, y - 2, stroke=SOFT)
        drawing.text(x, y + 10, f"{clocks:,}", size=10, fill=SOFT, anchor="middle")
    drawing.text(LEFT - 10, y + 10, "time in clocks", size=11, fill=SOFT, anchor="end")
    m, n, k = traces[0][1]["about"]["shape"].split("x")
    drawing.text(20, y + 32, f"SM 0 of {traces[0][1]['about']['sms']}, M × N × K = {m} × {n} × {k}. "
                 f"{draw_trace.SOURCE}", size=11)
    drawing.height = y + 44
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
