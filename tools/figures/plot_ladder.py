#!/usr/bin/env python3
"""Draws the ladder of the steps, docs/results/NAME.ladder.svg, from the record docs/results/NAME.json.

Usage: tools/figures/plot_ladder.py [--check] [--shape MxNxK] [--output FILE.svg] [RECORD.json ...]

One bar a step (its fastest variant): TFLOP/s, the share of the wgmma-only ceiling, and the lines of cuBLASLt and of the
ceiling. Without records: every record that has a ladder already. --check draws nothing and fails when a ladder and its
record differ.
"""
import figures
import palette
from program import UserError
from records import default_shape, find_shape, mode_text, pretty_shape


def fastest_of_each_step(shape):
    best = {}
    for contestant in shape["contestants"]:
        if contestant["kind"] == "step":
            known = best.setdefault(contestant["name"], contestant)
            if contestant["median_us"] < known["median_us"]:
                best[contestant["name"]] = contestant
    if not best:
        raise UserError("the record has no step in it.")
    return [best[name] for name in sorted(best)]


def label(step, ceiling):
    rate = step["tflops"]
    text = f"{rate:.0f}" if rate >= 100 else f"{rate:.1f}"
    return f"{text} · {100 * rate / ceiling:.1f} % of the ceiling" if ceiling else text


def draw(pyplot, record, shape):
    steps = fastest_of_each_step(shape)
    rates = {c["name"]: c["tflops"] for c in shape["contestants"] if c["kind"] != "step"}
    ceiling, cublaslt = rates.get("wgmma_ceiling"), rates.get("cublaslt_best")
    figure, axes = pyplot.subplots(figsize=(9, 1.7 + 0.42 * len(steps)), layout="constrained")
    top = max([step["tflops"] for step in steps] + [rate for rate in (ceiling, cublaslt) if rate])
    positions = range(len(steps))
    colors = [palette.GREEN if cublaslt and step["tflops"] > cublaslt else palette.BLUE for step in steps]
    axes.barh(positions, [step["tflops"] for step in steps], height=0.62, color=colors, linewidth=0)
    axes.set_yticks(positions, [step["name"] for step in steps])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.grid(axis="x")
    for line, name, color in ((cublaslt, "cuBLASLt best", palette.CUBLASLT), (ceiling, "wgmma-only ceiling", palette.CEILING)):
        if line:
            axes.axvline(line, color=color, linewidth=1.4, linestyle=(0, (5, 2)), zorder=0.9)
            # The two lines may lie close together: one label leans left of its line, the other right.
            side = "right" if name.startswith("cuBLASLt") else "left"
            axes.annotate(f" {name} {line:.0f} ", (line, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
                          textcoords="offset points", ha=side, va="bottom", color=color, fontsize=9)
    for position, step in zip(positions, steps):
        inside = step["tflops"] > 0.5 * top
        axes.annotate(label(step, ceiling), (step["tflops"], position), xytext=(-6 if inside else 6, 0),
                      textcoords="offset points", ha="right" if inside else "left", va="center", fontsize=9,
                      color="white" if inside else palette.INK,
                      bbox=None if inside else {"facecolor": palette.GROUND, "edgecolor": "none", "pad": 1.5})
    axes.set_xlim(0, top * 1.2)
    axes.set_xlabel(f"TFLOP/s (bf16, fp32 accumulate), {pretty_shape(shape)}, {mode_text(record)}")
    axes.set_title(f"{record['device']['name']}, commit {record['commit']}", loc="left", fontsize=10, pad=22)
    figures.caption(figure, "The ladder of the steps",
                    "A bar is the fastest variant of a step." + (" Green bars are faster than cuBLASLt." if cublaslt else ""))
    text = figures.svg_text(figure)
    pyplot.close(figure)
    return text


def picked_shape(record, arguments):
    return find_shape(record, arguments.shape) if arguments.shape else default_shape(record)


if __name__ == "__main__":
    figures.plot_records(__file__, __doc__, ".ladder.svg", picked_shape,
                         lambda pyplot, record, arguments: draw(pyplot, record, picked_shape(record, arguments)),
                         options=["--shape"])
