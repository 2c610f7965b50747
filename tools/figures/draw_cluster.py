#!/usr/bin/env python3
"""Draws which CTA of a cluster loads which share of A and B: docs/figures/cluster.svg."""
from drawing import Drawing, figure_program
import palette
from palette import CATEGORIES, INK, SOFT, WHITE

FIGURE = "docs/figures/cluster.svg"
CLUSTERS = [(2, 1), (1, 2), (2, 2)]  # CTAs along M, along N
TILE_M, TILE_N, TILE_K = 128, 256, 64
SCALE = 0.5  # pixels for a row of A or B
COLORS = CATEGORIES
LIGHT = [palette.LIGHT[color] for color in CATEGORIES]
STRIP = 30  # the k-tile's depth on paper
GAP, TOP, LEFT = 6, 96, 20


def position(rank, cluster_m):
    """(m, n) of a CTA, as in common/gemm/cluster_tile.cuh."""
    return rank % cluster_m, rank // cluster_m


def senders(rank, cluster_m, cluster_n):
    """The CTAs that write to this one's stages, itself among them."""
    m, n = position(rank, cluster_m)
    return [other for other in range(cluster_m * cluster_n)
            if position(other, cluster_m)[0] == m or position(other, cluster_m)[1] == n]


def loaded_bytes(cluster_m, cluster_n):
    """What one CTA asks L2 for, for a k-tile."""
    return 2 * TILE_K * (TILE_M // cluster_n + TILE_N // cluster_m)


def listed(numbers):
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def draw_one(drawing, x, cluster_m, cluster_n):
    """One cluster: D in the middle, A at its left, B above it."""
    high, wide = TILE_M * SCALE, TILE_N * SCALE
    drawing.text(x, 52, f"{cluster_m} × {cluster_n}", size=14, weight="bold")
    left, top = x + STRIP + 24, TOP + STRIP + 20
    for n in range(cluster_n):  # B: a column of the cluster needs the same columns of Bᵀ, one share from each of its CTAs
        begin = left + n * (wide + GAP)
        share = wide / cluster_m
        for m in range(cluster_m):
            rank = m + n * cluster_m
            drawing.rect(begin + m * share, TOP, share, STRIP, LIGHT[rank], stroke=COLORS[rank])
            drawing.text(begin + (m + 0.5) * share, TOP + 19, str(rank), size=12, fill=COLORS[rank], anchor="middle",
                         weight="bold")
        drawing.text(begin + wide / 2, TOP - 8, f"B, {TILE_N} rows", size=11, fill=SOFT, anchor="middle")
    for m in range(cluster_m):  # A: a row of the cluster needs the same rows
        begin = top + m * (high + GAP)
        share = high / cluster_n
        for n in range(cluster_n):
            rank = m + n * cluster_m
            drawing.rect(x + 20, begin + n * share, STRIP, share, LIGHT[rank], stroke=COLORS[rank])
            drawing.text(x + 20 + STRIP / 2, begin + (n + 0.5) * share + 4, str(rank), size=12, fill=COLORS[rank],
                         anchor="middle", weight="bold")
        drawing.text(x + 14, begin + high / 2, f"A, {TILE_M} rows", size=11, fill=SOFT, anchor="middle", rotate=-90)
    for rank in range(cluster_m * cluster_n):
        m, n = position(rank, cluster_m)
        tile_x, tile_y = left + n * (wide + GAP), top + m * (high + GAP)
        drawing.rect(tile_x, tile_y, wide, high, WHITE, stroke=COLORS[rank], stroke_width=2)
        drawing.text(tile_x + wide / 2, tile_y + high / 2 - 4, f"CTA {rank}", size=13, fill=COLORS[rank], anchor="middle",
                     weight="bold")
        own = senders(rank, cluster_m, cluster_n)
        drawing.text(tile_x + wide / 2, tile_y + high / 2 + 14, f"gets from {listed(own)}", size=11, fill=INK,
                     anchor="middle")
    kilobytes = loaded_bytes(cluster_m, cluster_n) // 1024
    y = top + 2 * (high + GAP) + 20
    lines = [f"a CTA loads {TILE_M // cluster_n} + {TILE_N // cluster_m} rows: {kilobytes} KB;",
             f"{2 * TILE_K * (TILE_M + TILE_N) // 1024} KB arrive;",
             f"{cluster_m + cluster_n - 1} senders, "
             f"{cluster_m + cluster_n - 1} CTAs to release"]
    for line, words in enumerate(lines):
        drawing.text(left, y + 17 * line, words, size=12, fill=SOFT if line == 2 else INK)
    return left + max(cluster_n * (wide + GAP), 190)


def draw():
    drawing = Drawing(1000, 352, "Which CTA of a cluster loads what",
                      "For clusters of 2 x 1, 1 x 2 and 2 x 2 CTAs: the tiles of D, the rows of A and B that they need, and "
                      "for each part of A and B the CTA that loads it for all that need it.")
    drawing.caption("Which CTA of a cluster loads what",
                    f"One k-tile of {TILE_K} for tiles of {TILE_M} × {TILE_N}. A number is the CTA that loads a share; the share goes to all "
                    "tiles beside it or below it.", room=28)
    x = LEFT
    for cluster_m, cluster_n in CLUSTERS:
        x = draw_one(drawing, x, cluster_m, cluster_n) + 36
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
