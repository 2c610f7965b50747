"""What every plot shares: one version of matplotlib, one look, SVG text that is the same on every machine. A script imports
this first, which lets it find what is in tools/lib."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import program  # first, for Ctrl-C
import argparse
import io
import re

import environment
from palette import GRID, GROUND, INK, SOFT
from program import UserError
from records import ROOT, load_record, relative, write_whole


def start():
    """Call first: matplotlib's pyplot with the shared look."""
    environment.require("matplotlib")
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "gemm-steps", "svg.fonttype": "none",
        "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 10,
        "figure.facecolor": GROUND, "axes.facecolor": GROUND, "savefig.facecolor": GROUND,
        "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GRID,
        "xtick.color": SOFT, "ytick.color": INK, "axes.titlecolor": INK,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "grid.color": GRID,
    })
    from matplotlib import pyplot
    return pyplot


def caption(figure, title, sentence):
    """What every figure has at its head: what it is, and what to see in it."""
    figure.suptitle(f"{title}\n{sentence}", x=0.01, ha="left", fontsize=10.5)


def svg_text(figure):
    """The figure as SVG, the same bytes for the same figure: no date, no version, system fonts named first."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"[ \t]+$", "", buffer.getvalue(), flags=re.MULTILINE)
    return text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', Verdana, sans-serif")


def plot_records(file, usage, suffix, inspect, draw, options=(), read=load_record):
    """Runs the whole of a script that draws NAME.json as NAME`suffix`: its command line, its errors, its exit status.

    inspect(record, arguments) raises UserError for a record that cannot be drawn, before anything is installed;
    draw(pyplot, record, arguments) returns the SVG; `options` are further arguments of the command line; read(path) is the
    record, of a timed run unless told.
    """
    tool = f"tools/figures/{pathlib.Path(file).name}"
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS, prog=tool)
    parser.add_argument("--check", action="store_true")
    for option in options:
        parser.add_argument(option)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("records", nargs="*", type=pathlib.Path)
    sys.exit(program.run(tool, lambda: _plot(tool, suffix, inspect, draw, parser.parse_args(), read)))


def _plot(tool, suffix, inspect, draw, arguments, read):
    records = arguments.records or [path.with_suffix("").with_suffix(".json")
                                    for path in sorted(ROOT.glob(f"docs/results/*{suffix}"))]
    if arguments.output and len(records) != 1:
        raise UserError("--output goes with exactly one record.")
    if not records:
        return 0
    for path in records:
        inspect(read(path), arguments)
    pyplot = start()
    different = 0
    for path in records:
        output = arguments.output or path.with_suffix(suffix)
        text = draw(pyplot, read(path), arguments)
        if not arguments.check:
            write_whole(output, text)
            print(f"wrote {relative(output)}")
        elif not output.exists() or output.read_bytes() != text.encode():
            print(f"{relative(output)}: differs from its record; run {tool}.", file=sys.stderr)
            different = 1
    return different
