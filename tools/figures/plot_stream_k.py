#!/usr/bin/env python3
"""Draws what becomes of the last wave, docs/results/NAME.waves.svg, from the record docs/results/NAME.json.

Usage: tools/figures/plot_stream_k.py [--check] [--output FILE.svg] [RECORD.json ...]

Across: the number of tiles of 128 x 256; up: TFLOP/s of step 18's variants, of cuBLASLt and of the wgmma-only ceiling.
Whole waves are marked. The record holds shapes of one K, as many as you like:
  tools/compare 18:data_parallel 18:split_k2 18:stream_k 18:hybrid 1408x1536x8192 ... --json docs/results/waves_h200.json
Without records: every record that has such a figure already. --check draws nothing and fails when a figure and its
record differ.
"""
import figures
import palette
from program import UserError
from records import mode_text, shape_name

TILE_M, TILE_N = 128, 256
STEP = "18_stream_k"
LINES = [  # (name, variant of the step), what it is called, colour, dashes, width
    (("wgmma_ceiling", None), "wgmma-only ceiling", palette.CEILING, (0, (2, 2)), 1.3),
    (("cublaslt_best", None), "cuBLASLt best", palette.CUBLASLT, (0, (6, 2)), 1.6),
    ((STEP, "data_parallel"), "data-parallel", palette.SOFT, "-", 1.6),
    ((STEP, "split_k2"), "split-K, 2", palette.PURPLE, "-", 1.3),
    ((STEP, "stream_k"), "Stream-K over everything", palette.GREEN, "-", 1.3),
    ((STEP, "hybrid"), "hybrid", palette.BLUE, "-", 2.4),
]


def tile_count(shape):
    return -(-shape["m"] // TILE_M) * -(-shape["n"] // TILE_N)


def key(contestant):
    return (contestant["name"], contestant["variant"] if contestant["kind"] == "step" else None)


def curves(record):
    """{key: [(tiles, TFLOP/s)]} in ascending order of tiles, for the lines that the record has."""
    depths = sorted({shape["k"] for shape in record["shapes"]})
    if len(depths) > 1:
        raise UserError(f"the shapes of the record have different K ({', '.join(map(str, depths))}); time one K.")
    points = {}
    counts = {}
    for shape in record["shapes"]:
        tiles = tile_count(shape)
        if tiles in counts:
            raise UserError(f"{counts[tiles]} and {shape_name(shape)} have {tiles} tiles both; time one of them.")
        counts[tiles] = shape_name(shape)
        for contestant in shape["contestants"]:
            points.setdefault(key(contestant), []).append((tiles, contestant["tflops"]))
    if (STEP, "data_parallel") not in points or (STEP, "hybrid") not in points:
        raise UserError(f"the record lacks {STEP}'s variants data_parallel and hybrid; time both.")
    if len(counts) < 2:
        raise UserError("the record has one shape; a curve needs two or more.")
    return {name: sorted(values) for name, values in points.items()}


def draw(pyplot, record):
    lines = curves(record)
    workers = record["device"]["sm_count"]
    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    counts = [tiles for tiles, _ in lines[STEP, "data_parallel"]]
    top = max(rate for values in lines.values() for _, rate in values)
    for waves in range(1, counts[-1] // workers + 1):
        axes.axvline(waves * workers, color=palette.GRID, linewidth=5, zorder=0.5)
        axes.annotate(f"{waves} wave{'s' if waves > 1 else ''}", (waves * workers, 0), xycoords=("data", "axes fraction"),
                      xytext=(-5, 6), textcoords="offset points", ha="right", color=palette.SOFT, fontsize=9)
    for name, label, color, dashes, width in LINES:
        if name in lines:
            tiles, rates = zip(*lines[name])
            axes.plot(tiles, rates, color=color, linestyle=dashes, linewidth=width, marker="o", markersize=3, label=label)
    axes.set_xlim(counts[0] - 4, counts[-1] + 4)
    axes.set_ylim(0, 1.05 * top)
    axes.grid(axis="y")
    axes.tick_params(length=0)
    axes.set_xlabel(f"tiles of {TILE_M} × {TILE_N}, for {workers} SMs")
    axes.set_ylabel(f"TFLOP/s (bf16, fp32 accumulate), K = {record['shapes'][0]['k']}")
    axes.legend(loc="lower right", frameon=True, facecolor=palette.GROUND, edgecolor="none", fontsize=9, framealpha=0.9,
                bbox_to_anchor=(1, 0.06))
    axes.set_title(f"{record['device']['name']}, {mode_text(record)}, commit {record['commit']}", loc="left", fontsize=10)
    figures.caption(figure, "What becomes of the last wave",
                    "Between whole waves (grey bars) whole tiles leave SMs idle. The hybrid keeps them busy.")
    text = figures.svg_text(figure)
    pyplot.close(figure)
    return text


if __name__ == "__main__":
    figures.plot_records(__file__, __doc__, ".waves.svg", lambda record, _: curves(record),
                         lambda pyplot, record, _: draw(pyplot, record))
