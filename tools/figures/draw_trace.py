#!/usr/bin/env python3
"""Draws the timelines of the steps, each beside the one it builds on: docs/figures/traces/NN.svg from NN.json.

Also fills the table of the model's constants in docs/timelines.md.

Usage: tools/figures/draw_trace.py [--check | --record]

--check draws nothing and fails when a committed figure is not what this script draws. --record first runs every step of
the table below on the emulator (tools/run NN --trace) and replaces its trace; without it a trace from a GPU is as good.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import subprocess

from blocks import markdown, rewrite
from drawing import Drawing, figure_program
from figure_data import SM_PROCESS, load_timeline
from figures import BLUE, GREEN, GRID, INK, ORANGE, RED, SOFT
from program import UserError
from records import ROOT, read_text
from steps import builds_on, steps

FOLDER = "docs/figures/traces"
PAGE = "docs/timelines.md"
# How --record runs a step: the shape, the number of SMs, and a variant that is not the default. Every SM gets two tiles
# of K = 512, or four where two consumers take them in turn. Where K is cut, five tiles of K = 1024 on four SMs, and the
# same tiles whole; NN.NAME is drawn between the step it builds on and NN. With two consumer groups and K = 2048, 9 tiles, of
# which 5 are cut. A step that is not here takes the default shape.
RECORDED = {"05": ("256x128x512", 1), "06": ("256x128x512", 1), "07": ("256x128x512", 1), "08": ("256x128x512", 1),
            "09": ("256x128x512", 1), "10": ("256x128x512", 1), "11": ("256x256x512", 1), "12": ("256x192x512", 1),
            "13": ("512x128x512", 1), "14": ("256x256x512", 1), "15": ("256x256x512", 1), "16": ("512x256x512", 2),
            "17": ("1024x192x512", 2), "18": ("640x256x1024", 4, "stream_k"),
            "18.data_parallel": ("640x256x1024", 4, "data_parallel"),
            "19": ("1152x192x2048", 4), "20": ("768x256x1024", 2), "21": ("1024x352x512", 2),
            "22": ("1024x176x512", 2, "128x176_ping_pong")}
CTAS = 4

COLORS = {"issue": ORANGE, "multiply": GREEN, "epilogue": BLUE, "store": BLUE, "wait full": "#eec9cd", "wait empty": "#f3e3cf",
          "wait order": "#d9d4e8", "wait store": "#cfdcee", "pass partials": RED}
LEFT, WIDTH, ROW = 150, 860, 26


def load(path):
    """A timeline with its end."""
    trace = load_timeline(path)
    events = trace["traceEvents"]
    end = max(event["args"]["clock"] + event["args"]["clocks"] for event in events if event["ph"] == "X")
    return {"about": trace["otherData"], "events": events, "end": end}


def processes(trace):
    """pid -> name, of the CTAs and the SMs."""
    return {event["pid"]: event["args"]["name"] for event in trace["events"] if event["name"] == "process_name"}


def rows(trace):
    """[(name, [events])]: the roles of SM 0, whichever CTA plays them; the engines of every SM."""
    threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["events"]
               if event["name"] == "thread_name"}
    names = processes(trace)
    first_sm = min((name.split(" on ")[1] for pid, name in names.items() if pid < SM_PROCESS),
                   key=lambda sm: int(sm.split()[1]))
    found = {}
    for event in trace["events"]:
        if event["ph"] != "X":
            continue
        process, thread = names[event["pid"]], threads[event["pid"], event["tid"]]
        if event["pid"] < SM_PROCESS:
            if process.split(" on ")[1] == first_sm:
                found.setdefault((0, thread), []).append(event)
        elif thread == "tensor cores":
            found.setdefault((2, f"tensor cores, {process}"), []).append(event)
        elif thread.startswith("copies") and process == first_sm:
            found.setdefault((1, "copies"), []).append(event)
    order = {key: index for index, key in enumerate(found)}
    return [(name, found[kind, name]) for kind, name in sorted(found, key=lambda key: (key[0], order[key]))]


def busy(events, end):
    return sum(event["args"]["clocks"] for event in events) / end


def summary(trace):
    """"tensor cores busy 83 % of 19,641 clocks", of the SM that has most to do."""
    shares = [busy(events, trace["end"]) for name, events in rows(trace) if name.startswith("tensor cores")]
    if not shares:
        return f"{trace['end']:,} clocks"
    return f"tensor cores busy {100 * max(shares):.0f} % of {trace['end']:,} clocks"


def draw_row(drawing, name, events, top, scale):
    drawing.text(LEFT - 10, top + 15, name, size=11, anchor="end")
    drawing.line(LEFT, top + ROW - 3, LEFT + WIDTH, top + ROW - 3, stroke=GRID)
    lanes = sorted({event["tid"] for event in events}) if name == "copies" else []
    for event in events:
        x, width = LEFT + scale * event["args"]["clock"], scale * event["args"]["clocks"]
        if lanes:
            height = 18 / len(lanes)
            y = top + 2 + height * lanes.index(event["tid"])
            drawing.rect(x, y, max(width, 0.8), max(height - 1, 1), ORANGE)
            continue
        waits = event["name"].startswith("wait")
        drawing.rect(x, top + (6 if waits else 2), max(width, 0.8), 10 if waits else 18, COLORS[event["name"]],
                     stroke="#ffffff" if width > 3 and not waits else None, stroke_width=0.5)


def panel(drawing, trace, top, scale):
    about = trace["about"]
    number, _, name = about["step"].partition("_")
    drawing.text(LEFT, top, f"Step {number}, {name}: {about['variant']}, {about['shape']}: {summary(trace)}", size=12,
                 weight="bold")
    y = top + 8
    for row, events in rows(trace):
        draw_row(drawing, row, events, y, scale)
        y += ROW
    return y


def height(trace):
    return 8 + ROW * len(rows(trace)) + 30


def source(traces):
    if all(trace["about"]["backend"] == "model" for trace in traces):
        return ("The time axis is that of the model in docs/timelines.md, not a measurement; operations and waits are those "
                "of the emulated kernels.")
    parts = [f"step {trace['about']['step'][:2]}: "
             + ("the model in docs/timelines.md" if trace["about"]["backend"] == "model"
                else f"measured, {trace['about']['device']}") for trace in traces]
    return "The time axis: " + "; ".join(parts) + "."


def tick(clocks):
    """A round number of clocks, about an eighth of all."""
    step = 1000
    while clocks / step > 10:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return step


def draw(traces, base="the step before"):
    """Traces below each other, on one scale: of the step that this one builds on, and of the step itself."""
    end = max(trace["end"] for trace in traces)
    scale = WIDTH / end
    total = 62 + sum(height(trace) for trace in traces) + 34
    number = traces[-1]["about"]["step"][:2]
    drawing = Drawing(LEFT + WIDTH + 20, total, f"Timeline of step {number}",
                      f"What the roles of a CTA do over time, and when the tensor cores multiply; above {base}.")
    x = LEFT
    for name in ("wait full", "wait empty", "wait order", "wait store", "issue", "multiply", "epilogue", "pass partials"):
        words = "epilogue, store" if name == "epilogue" else name
        drawing.rect(x, 15, 10, 10, COLORS[name])
        drawing.text(x + 14, 24, words, size=11, fill=SOFT)
        x += 30 + 6.4 * len(words)
    top = 56
    for trace in traces:
        top = panel(drawing, trace, top, scale) + 30
    y = top - 24
    for clocks in range(0, end + 1, tick(end)):
        x = LEFT + scale * clocks
        drawing.line(x, y - 8, x, y - 2, stroke=SOFT)
        drawing.text(x, y + 10, f"{clocks:,}" if clocks else "0 clocks", size=10, fill=SOFT, anchor="middle")
    drawing.text(LEFT, y + 30, source(traces), size=11, fill=INK)
    return drawing.svg()


def record():
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    later = {step[:2]: ("", 2) for step in steps() if step >= "05" and step[:2] not in RECORDED}
    for name, (shape, sms, *variant) in {**RECORDED, **later}.items():
        command = ["tools/run", name[:2], "--backend", "emulator", *([shape] if shape else []), "--sms", str(sms),
                   "--trace-ctas", str(CTAS), "--trace", f"{FOLDER}/{name}.json", *(["--variant", variant[0]] if variant else [])]
        print(" ".join(command))
        if subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise UserError(f"'{' '.join(command)}' failed.")


def figures():
    """Every trace with that of the step it builds on, or where there is none, with the one before it."""
    paths = sorted((ROOT / FOLDER).glob("[0-9][0-9].json"))
    bases = {step[:2]: (builds_on(step) or "")[:2] for step in steps()}
    jobs = {}
    for before, path in zip([None, *paths], paths):
        base = next((other for other in paths if other.stem == bases.get(path.stem)), before)
        others = sorted((ROOT / FOLDER).glob(f"{path.stem}.*.json"))
        traced = [*([base] if base else []), *others, path]
        words = ["the step before" if base == before else f"step {base.stem}"]
        jobs[f"{FOLDER}/{path.stem}.svg"] = lambda traced=traced, words=words: draw([load(one) for one in traced], *words)
    jobs[PAGE] = lambda: page([load(path) for path in paths])
    return jobs


def page(traces):
    """docs/timelines.md with the constants of the model between its markers."""
    models = [trace["about"]["model"] for trace in traces if trace["about"]["backend"] == "model"]
    text = read_text(ROOT / PAGE, "the page")
    if not models:  # then nothing here says what they are now
        return text
    table = [[constant["name"], f"{constant['value']:g} {constant['unit']}", constant["source"]] for constant in models[0]]
    return rewrite(text, ROOT / PAGE, "model", lambda *_: markdown(["what", "value", "source"], [False, True, False], table))


if __name__ == "__main__":
    sys.exit(figure_program("tools/figures/draw_trace.py", __doc__, figures, record))
