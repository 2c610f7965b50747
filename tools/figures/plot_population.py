#!/usr/bin/env python3
"""Draws what a race over random shapes found, docs/results/NAME.population.svg, from the record docs/results/NAME.json.

Usage: tools/figures/plot_population.py [--check] [--output FILE.svg] [RECORD.json ...]

Left: the speeds of what chooses by shape and of the fastest variant relative to cuBLASLt, each sorted. Right: how much longer
the choice takes than the fastest variant, sorted. Without records: every record that has such a figure already. --check
draws nothing and fails when a figure and its record differ.
"""
import figures
import palette
from populations import geometric_mean, population
from records import mode_text


def draw(pyplot, record):
    values = population(record)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for key, name, color in (("best", "fastest variant", palette.GREEN), ("speed", "chosen by the model", palette.BLUE)):
        ratios = sorted(values[key])
        if not ratios:
            continue
        left.plot(range(1, len(ratios) + 1), ratios, color=color, linewidth=1.6,
                  label=f"{name}: {geometric_mean(ratios):.3f}")
    left.axhline(1, color=palette.CUBLASLT, linewidth=1.4, linestyle=(0, (5, 2)), zorder=0.9)
    left.set_xlabel("shapes, the slowest first")
    left.set_ylabel("speed / cuBLASLt best")
    left.legend(frameon=False, loc="lower right", title="geometric means", fontsize=9, title_fontsize=9)
    regret = sorted(values["regret"])
    if regret:
        right.plot(range(1, len(regret) + 1), [100 * (ratio - 1) for ratio in regret], color=palette.BLUE, linewidth=1.6)
        right.set_xlabel("shapes, the best choice first")
        right.set_ylabel("% longer than the fastest variant")
        what = "Right: what the choice loses to the fastest variant."
    else:
        work = [2e-9 * shape["m"] * shape["n"] * shape["k"] for shape in record["shapes"]]
        right.semilogx(work, values["speed"], "o", color=palette.BLUE, markersize=4)
        right.axhline(1, color=palette.CUBLASLT, linewidth=1.4, linestyle=(0, (5, 2)), zorder=0.9)
        right.set_xlabel("work of the shape (GFLOP)")
        right.set_ylabel("speed / cuBLASLt best")
        what = "Right: the same speeds by the work of the shape."
    for axes in (left, right):
        axes.grid(axis="y")
        axes.tick_params(length=0)
    left.set_title(f"{len(values['speed'])} random shapes, {record['device']['name']}, {mode_text(record)}, commit {record['commit']}",
                   loc="left", fontsize=10)
    figures.caption(figure, "Random shapes",
                    f"Left: above the dashed line, a shape is faster than with cuBLASLt. {what}")
    text = figures.svg_text(figure)
    pyplot.close(figure)
    return text


if __name__ == "__main__":
    figures.plot_records(__file__, __doc__, ".population.svg",
                         lambda record, arguments: population(record),
                         lambda pyplot, record, arguments: draw(pyplot, record))
