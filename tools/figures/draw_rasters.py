#!/usr/bin/env python3
"""Draws the orders of a persistent kernel's tiles: docs/figures/rasters.svg from docs/figures/rasters.json.

tools/play raster --json docs/figures/rasters.json writes the data from the scheduler that the kernels use.
"""
from drawing import Drawing, figure_program
from figure_data import load_rasters
from palette import GRID, INK, SOFT, WAVES, WHITE
from records import ROOT

DATA = "docs/figures/rasters.json"
FIGURE = "docs/figures/rasters.svg"
TITLES = {"along_n": "along N", "along_m": "along M", "hilbert": "Hilbert curve"}
COLUMNS = 4
CELL, GAP, TOP = 8, 26, 76
LABELS = 46


def title(name):
    return TITLES.get(name, f"raster groups of {name.removeprefix('group')}")


def panel(drawing, data, order, left, top):
    """D with the tiles of the first waves and the path through the first."""
    rows, columns = data["grid"]
    # A cell is as high and wide as its tile, so D has its true proportions.
    width, height = CELL, CELL * data["tile"][0] / data["tile"][1]
    drawing.text(left, top + 14, title(order["order"]), size=13, weight="bold")
    drawing.text(left, top + 31, f"{order['rows']} rows × {order['columns']} columns of tiles", size=11, fill=SOFT)
    y0 = top + LABELS - 6
    drawing.rect(left, y0, columns * width, rows * height, WHITE, stroke=GRID)
    waves = {divmod(tile, columns): index // data["sms"] for index, tile in enumerate(order["tiles"])}
    bars = {}  # colour: [(x, y, width, height)]
    for row in range(rows):
        column = 0
        while column < columns:  # neighbours of one wave are one rectangle
            wave, begin = waves.get((row, column)), column
            while column < columns and waves.get((row, column)) == wave:
                column += 1
            if wave is not None:
                bars.setdefault(WAVES[min(wave, len(WAVES) - 1)], []).append(
                    (left + begin * width, y0 + row * height, (column - begin) * width, height))
    for color, boxes in bars.items():
        drawing.bars(boxes, color)
    points = [(left + (tile % columns + 0.5) * width, y0 + (tile // columns + 0.5) * height)
              for tile in order["tiles"][:data["sms"]]]
    drawing.polyline(points, INK, width=1)
    drawing.circle(*points[0], 2.5, INK)
    drawing.rect(left, y0, columns * width, rows * height, "none", stroke=GRID)


def draw():
    data = load_rasters(ROOT / DATA)
    rows, columns = data["grid"]
    orders = data["orders"]
    width = columns * CELL
    height = rows * CELL * data["tile"][0] / data["tile"][1] + LABELS
    lines = -(-len(orders) // COLUMNS)
    m, n, k = data["shape"]
    drawing = Drawing(GAP + COLUMNS * (width + GAP), TOP + lines * (height + GAP), "The orders of tiles",
                      "D in tiles, once for each order: the tiles of the first three waves in three colours, and the path "
                      "through the first wave. Long rows or columns touch all of B or all of A; groups of 8 and 16 rows and "
                      "the Hilbert curve stay near a square.")
    drawing.caption("The orders of tiles",
                    f"Orange: the first tile of each of {data['sms']} SMs, with a line in the order of their numbers. Blue: the second. Green: "
                    "the third. A wave near a square touches the fewest rows and columns, and reads the fewest bytes from memory.", GAP, room=26)
    drawing.text(GAP, 46, f"D of {m} × {n} in tiles of {data['tile'][0]} × {data['tile'][1]}; rows and columns that the "
                          f"first wave touches", size=11, fill=SOFT)
    for index, order in enumerate(orders):
        panel(drawing, data, order, GAP + index % COLUMNS * (width + GAP), TOP - 14 + index // COLUMNS * (height + GAP))
    # The place of the missing panel explains the axes.
    if len(orders) % COLUMNS:
        x = GAP + len(orders) % COLUMNS * (width + GAP) + 20
        y = TOP + (lines - 1) * (height + GAP) + LABELS
        drawing.line(x, y, x + 70, y, stroke=SOFT)
        drawing.polygon([(x + 78, y), (x + 70, y - 4), (x + 70, y + 4)], SOFT)
        drawing.text(x + 86, y + 4, "N: rows of B", size=11, fill=SOFT)
        drawing.line(x, y, x, y + 70, stroke=SOFT)
        drawing.polygon([(x, y + 78), (x - 4, y + 70), (x + 4, y + 70)], SOFT)
        drawing.text(x, y + 94, "M: rows of A", size=11, fill=SOFT, anchor="start")
        drawing.circle(x + 4, y + 124, 2.5, INK)
        drawing.text(x + 14, y + 128, "tile number 0", size=11, fill=SOFT)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
