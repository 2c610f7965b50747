#!/usr/bin/env python3
"""Draws how far fp8 sums are from the exact ones, by K, docs/results/NAME.promotion.svg, from the record docs/results/NAME.json.

Usage: tools/figures/plot_promotion.py [--check] [--output FILE.svg] [RECORD.json ...]

Across: K; up: the error of step 43's sums over the Euclidean norm of their products, root mean square and largest, without
promotion and with promotion every 512, 256 and 128 elements. The record holds checks of the variants whose D is binary32,
with inputs of the pattern normal, at one M x N and as many K as you like:
  tools/run 43 128x128x128 128x128x256 ... --check --variant all --pattern normal --json docs/results/promotion_emulator.json
Without records: every record that has such a figure already. --check draws nothing and fails when a figure and its
record differ.
"""
import figures
import palette
from program import UserError
from records import load

STEP, PATTERN = "43_promotion", "normal"
LINES = [("128x128_never", "never promoted", palette.RED), ("128x128_every512", "every 512", palette.ORANGE),
         ("128x128_every256", "every 256", palette.BLUE), ("128x128_every128", "every 128", palette.GREEN)]


def binary32_bound(k):
    """What docs/verification.md allows a sum of k products in binary32, over their norm."""
    g = 3 * (k + 2) * 2.0 ** -24
    return g / (1 - g) * min(k ** 0.5, 9)


def curves(record):
    """{variant: [(K, root mean square, largest)]} in ascending order of K."""
    points = {variant: {} for variant, _, _ in LINES}
    sizes = set()
    for check in record.get("checks", []):
        if check["step"] != STEP or check["pattern"] != PATTERN or check["variant"] not in points or "error_rms" not in check:
            continue
        sizes.add((check["m"], check["n"]))
        points[check["variant"]][check["k"]] = (check["error_rms"], check["error_largest"])
    for variant, values in points.items():
        if len(values) < 2:
            raise UserError(f"the record has {len(values)} errors of {STEP}'s {variant}; a curve needs two or more K, "
                            f"checked with the pattern {PATTERN}.")
    if len(sizes) > 1:
        raise UserError("the checks of the record have different M or N; check one size.")
    return {variant: [(k, *values[k]) for k in sorted(values)] for variant, values in points.items()}


def draw(pyplot, record):
    lines = curves(record)
    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    depths = [k for k, _, _ in lines[LINES[0][0]]]
    axes.plot(depths, [binary32_bound(k) for k in depths], color=palette.SOFT, linestyle=(0, (6, 2)), linewidth=1.4,
              label="bound of binary32 sums")
    for variant, label, color in LINES:
        across, rms, largest = zip(*lines[variant])
        axes.plot(across, rms, color=color, linewidth=2, marker="o", markersize=3.5, label=label)
        axes.plot(across, largest, color=color, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(depths, [str(k) for k in depths])
    axes.minorticks_off()
    axes.grid(axis="y")
    axes.tick_params(length=0)
    axes.set_xlabel("K, e4m3 operands drawn from N(0, 1)")
    axes.set_ylabel("error of a sum / norm of its products")
    axes.legend(loc="upper left", frameon=True, facecolor=palette.GROUND, edgecolor="none", fontsize=9, framealpha=0.9)
    figures.caption(figure, "The error of fp8 sums, on the emulator",
                    "Without promotion it grows with K; with promotion it stays where one block has it. Dotted: the largest.")
    text = figures.svg_text(figure)
    pyplot.close(figure)
    return text


if __name__ == "__main__":
    figures.plot_records(__file__, __doc__, ".promotion.svg",
                         lambda record, _: curves(record), lambda pyplot, record, _: draw(pyplot, record),
                         read=lambda path: load(path, "checks"))
