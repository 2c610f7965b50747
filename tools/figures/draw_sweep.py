#!/usr/bin/env python3
"""Draws the map of tile sizes, docs/figures/NAME.svg, from the record docs/results/NAME.json of tools/sweep.

Usage: tools/figures/draw_sweep.py [--check] [--output FILE.svg] [RECORD.json]

One cell for each height of the tile and depth of the k-tile: the best speed relative to cuBLASLt over the numbers of
stages that were timed, and that number; cells that do not fit say what is missing. Without a record:
docs/results/sweep_h200.json. --check draws nothing and fails when the map and its record differ.
"""
import figures
import argparse
import pathlib
import re
import sys

import palette
import program
from program import UserError
from records import ROOT, load, mode_text, pretty_shape, relative, write_whole

DEFAULT = ROOT / "docs/results/sweep_h200.json"
VARIANT = re.compile(r"(\d+)x(\d+)x(\d+)_stages(\d+)")


def best_variants(record):
    """{(m, k): (ratio, stages)} of the cells that were timed."""
    best = {}
    for contestant in record["shapes"][0]["contestants"]:
        if contestant["name"] != "sweep":
            continue
        match = VARIANT.fullmatch(contestant["variant"])
        if not match:
            raise UserError(f"the record has a tile '{contestant['variant']}'; a tile is named like 256x128x64_stages4.")
        m, _, k, stages = map(int, match.groups())
        ratio = contestant["to_cublaslt"]["median"]
        if not ratio > 0:
            raise UserError("the record has no ratios; the sweep needs cuBLASLt beside it.")
        best[m, k] = max(best.get((m, k), (0, 0)), (ratio, stages))
    return best


def checked(record, path):
    """The cells of the record: every cell was timed or has a reason, never both."""
    best = best_variants(record)
    for cell in record["cells"]:
        m, k = cell["m"], cell["k"]
        if bool(cell["limits"]) == ((m, k) in best):
            raise UserError(f"the cell {m}x{cell['n']}x{k} " + (
                "was timed and does not fit, both." if cell["limits"] else
                "was not timed; run tools/sweep without --tile."))
    return record["cells"], best


def draw(pyplot, record, path):
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle
    cells, best = checked(record, path)
    rows = sorted({cell["m"] for cell in cells})
    columns = sorted({cell["k"] for cell in cells})
    low, high = min(best.values())[0], max(best.values())[0]
    colors = LinearSegmentedColormap.from_list("speed", palette.SCALE)
    figure, axes = pyplot.subplots(figsize=(1.4 + 1.35 * len(columns), 1.6 + 0.72 * len(rows)), layout="constrained")
    for cell in cells:
        x, y = columns.index(cell["k"]), rows.index(cell["m"])
        if cell["limits"]:
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=palette.GROUND, edgecolor=palette.GRID, hatch="////",
                                     linewidth=1))
            axes.text(x + 0.5, y + 0.5, "\n".join(limit["what"] for limit in cell["limits"]), ha="center", va="center",
                      color=palette.SOFT, fontsize=8,
                      bbox={"facecolor": palette.GROUND, "edgecolor": "none", "pad": 2})
            continue
        ratio, stages = best[cell["m"], cell["k"]]
        share = (ratio - low) / (high - low) if high > low else 1
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colors(share), edgecolor=palette.GROUND, linewidth=2))
        ink = "white" if share > 0.4 else palette.INK
        axes.text(x + 0.5, y + 0.42, f"{ratio:.3f}", ha="center", va="center", color=ink, fontsize=12,
                  weight="bold" if ratio == high else "normal")
        axes.text(x + 0.5, y + 0.76, f"{stages} stages", ha="center", va="center", color=ink, fontsize=8)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    depth = {cell["k"]: cell["instructions"] for cell in cells}
    axes.set_xticks([x + 0.5 for x in range(len(columns))], [f"{k} = {depth[k]} × {k // depth[k]}" for k in columns])
    axes.set_yticks([y + 0.5 for y in range(len(rows))], [f"{m} × {cells[0]['n']}" for m in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("depth of the k-tile = instructions × 16")
    axes.set_ylabel("tile of D")
    axes.set_title(f"Speed relative to cuBLASLt, best number of stages; {pretty_shape(record['shapes'][0])}, "
                   f"{mode_text(record)}\n{record['device']['name']}, commit {record['commit']}", loc="left", fontsize=9)
    figures.caption(figure, "Every tile that fits on an SM",
                    "A number is the speed relative to cuBLASLt: dark is fast. A hatched tile does not fit, for the reason in it.")
    text = figures.svg_text(figure)
    pyplot.close(figure)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("record", nargs="?", type=pathlib.Path, default=DEFAULT)
    arguments = parser.parse_args()
    path = arguments.record
    output = arguments.output or ROOT / "docs/figures" / path.with_suffix(".svg").name
    record = load(path, "sweep")
    checked(record, path)  # before anything is installed
    text = draw(figures.start(), record, path)
    if arguments.check:
        if output.exists() and output.read_bytes() == text.encode():
            return 0
        print(f"{relative(output)}: differs from its record; run tools/figures/draw_sweep.py.", file=sys.stderr)
        return 1
    (ROOT / "docs/figures").mkdir(parents=True, exist_ok=True)
    write_whole(output, text)
    print(f"wrote {relative(output)}")
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/figures/draw_sweep.py", main))
