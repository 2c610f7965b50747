"""What every figure script shares: one version of matplotlib, one look, SVG text that is the same on every machine."""
import argparse
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from records import ROOT, UserError, load_record, relative, write_whole

MATPLOTLIB = "3.10.7"

# One look: dark ink on a warm light ground of its own, so that it reads the same on a light and on a dark page.
GROUND, INK, SOFT, GRID = "#faf8f4", "#22262e", "#6b7280", "#e2ddd3"
GREEN, BLUE, ORANGE, RED = "#4c8c2b", "#2f6db5", "#d07a1f", "#b5384a"


def require_matplotlib():
    """Returns when this Python has the pinned matplotlib; otherwise runs the script again under one that has.

    That one lives in .venv, made on first use. Raises UserError when it cannot be made.
    """
    try:
        import matplotlib
        if matplotlib.__version__ == MATPLOTLIB:
            return
    except ImportError:
        pass
    python = ensure_environment()
    os.execv(python, [str(python), *sys.argv])


def ensure_environment():
    """The Python of .venv, which has the pinned matplotlib; makes .venv where it is missing or has another version.

    It is made in a folder beside its place and put there when it is complete.
    """
    python = ROOT / ".venv" / "bin" / "python"
    has = [python, "-c", f"import matplotlib; assert matplotlib.__version__ == '{MATPLOTLIB}'"]
    if python.exists() and subprocess.run(has, capture_output=True, check=False).returncode == 0:
        return python
    print(f"installing matplotlib {MATPLOTLIB} into .venv", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".venv.part.") as part:
        environment = pathlib.Path(part) / "venv"
        pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--retries", "1", "--no-input",
               "--disable-pip-version-check", f"matplotlib=={MATPLOTLIB}"]
        for command in ([sys.executable, "-m", "venv", environment], pip):
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                last = (done.stderr or done.stdout).strip().splitlines()
                reason = last[-1] if last else "no reason given"
                raise UserError(f"matplotlib {MATPLOTLIB} could not be installed ({reason}); figures need it, nothing "
                                "else does.")
        old = ROOT / ".venv"
        if old.exists():
            old.rename(pathlib.Path(part) / "old")
        environment.rename(old)
    return python


def start():
    """Call first: matplotlib's pyplot with the shared look."""
    require_matplotlib()
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


def svg_text(figure):
    """The figure as SVG, the same bytes for the same figure: no date, no version, system fonts named first."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"[ \t]+$", "", buffer.getvalue(), flags=re.MULTILINE)
    return text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', Verdana, sans-serif")


def plot_records(tool, usage, suffix, inspect, draw, options=()):
    """The whole of a script that draws NAME.json as NAME`suffix`: its command line, its errors, its exit status.

    inspect(record, arguments) raises UserError for a record that cannot be drawn, before anything is installed;
    draw(pyplot, record, arguments) returns the SVG; `options` are further arguments of the command line.
    """
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true")
    for option in options:
        parser.add_argument(option)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("records", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        records = arguments.records or [path.with_suffix("").with_suffix(".json")
                                        for path in sorted(ROOT.glob(f"docs/results/*{suffix}"))]
        if arguments.output and len(records) != 1:
            raise UserError("--output goes with exactly one record.")
        if not records:
            return 0
        for path in records:
            inspect(load_record(path), arguments)
        pyplot = start()
        different = 0
        for path in records:
            output = arguments.output or path.with_suffix(suffix)
            text = draw(pyplot, load_record(path), arguments)
            if not arguments.check:
                write_whole(output, text)
                print(f"wrote {relative(output)}")
            elif not output.exists() or output.read_text(encoding="utf-8") != text:
                print(f"{relative(output)}: differs from its record; run {tool}.", file=sys.stderr)
                different = 1
        return different
    except UserError as error:
        print(f"{tool}: error: {error}", file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"{tool}: error: a record lacks the field {error}.", file=sys.stderr)
        return 2
