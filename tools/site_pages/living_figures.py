"""Which figures move on the site, and their data.

Where a picture of the Markdown is one of those below and stands alone in its paragraph, the site's page says so in data-figure, and
assets/figures/figure.js shows the figure that moves. The data are scripts, because a page that is opened as a file may not read files.
"""
import functools
import html
import json
import pathlib
import posixpath
import re
import sys

import emulator_panel
import repository

sys.path.append(str(repository.ROOT / "tools/figures"))
import draw_trace  # noqa: E402 (the path comes first)
import packed_json  # noqa: E402

FIGURES = "docs/figures"
TRACES = f"{FIGURES}/traces"
RUNS = f"{FIGURES}/runs.json.xz"  # by tools/figures/record_runs.py
# The pictures that have a figure made of RUNS: its kind, the parts of RUNS, and where they come from.
STEPPED = {
    "ring.svg": ("ring", ["ring"], "Logs of the emulator; its order of events says nothing about time."),
    "mbarrier_events.svg": ("ring", ["ring"], "Logs of the emulator; its order of events says nothing about time."),
    "phase_wheel.svg": ("mbarrier", ["mbarrier"], "From tools/play mbarrier on the emulator; a GPU shows the same rows."),
    "swizzles.svg": ("swizzle", ["swizzle"], "From tools/play tma_swizzle on the emulator; a GPU shows the same places."),
    "rasters.svg": ("raster", ["raster"], "From tools/play raster, which calls the function that the kernels call."),
    "stream_k.svg": ("stream_k", ["stream_k"], "From tools/play stream_k, which calls the scheduler that the kernels call. The costs of partials are those of step 18's model."),
    "tensor_memory.svg": ("tensor_memory", ["tensor_memory"], "Logs of the emulator; its order of events says nothing about time. The map is that of tools/play tensor_memory."),
    "descriptor.svg": ("swizzle", ["swizzle", "descriptor"], "From tools/play descriptor encode and tools/play tma_swizzle on the emulator."),
}
# The text beside these describes the picture, so it stays, and the figure that moves stands below it.
KEPT = {f"{FIGURES}/{picture}" for picture in ("ring.svg", "mbarrier_events.svg", "swizzles.svg", "tensor_memory.svg")}


@functools.cache
def figures():
    """{picture: (kind, name of its data)}."""
    found = {}
    for name in draw_trace.FIGURES:
        found[f"{TRACES}/{name}.svg"] = ("timeline", f"timeline-{name}")
        if (repository.ROOT / f"{TRACES}/{name}.gpu.svg").exists():
            found[f"{TRACES}/{name}.gpu.svg"] = ("timeline", f"timeline-{name}.gpu")
    for picture, (kind, parts, _) in STEPPED.items():
        found[f"{FIGURES}/{picture}"] = (kind, "-".join(parts))
    return found


def sources():
    """The files that data are made of, besides the pictures."""
    return [draw_trace.PACKED, draw_trace.KEPT, RUNS]


@functools.cache
def packed(file):
    return packed_json.read(repository.ROOT / file)


def head_of(picture):
    """The title of a drawn picture, and the sentence that says what to see in it."""
    text = (repository.ROOT / picture).read_text(encoding="utf-8")
    title, description = (html.unescape(re.search(rf"(?s)<{tag}>(.*?)</{tag}>", text)[1]) for tag in ("title", "desc"))
    return {"title": title, "sentence": description}


def timeline(picture, name):
    """The traces of a timeline: those of the model, or those of a GPU."""
    head = head_of(picture)
    head["sentence"] = re.sub(r"^What the roles of a CTA do over time.*?\. ", "", head["sentence"])
    shown = draw_trace.FIGURES[name.removesuffix(".gpu")][0]
    if not name.endswith(".gpu"):
        return {**head, "source": draw_trace.SOURCE, "traces": [packed(draw_trace.PACKED)[one] for one in shown]}
    traces = [draw_trace.with_end(packed(draw_trace.KEPT)[one]) for one in shown if one in draw_trace.MEASURED]
    return {**head, "source": "Measured. Where a row is empty, the role is in none of these states; the recorder's own work is part of it.",
            "traces": [draw_trace.compacted(trace) for trace in traces]}


def data(picture):
    kind, name = figures()[picture]
    if kind != "timeline":
        _, parts, source = STEPPED[pathlib.PurePosixPath(picture).name]
        return {"source": source, "program": bool(emulator_panel.script_files()), **{part: packed(RUNS)[part] for part in parts}}
    return timeline(picture, name.removeprefix("timeline-"))


def write(folder):
    """The data of all figures, each as a script."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture, (_, name) in figures().items():
        text = json.dumps(data(picture), ensure_ascii=False, separators=(",", ":"))
        (folder / f"{name}.js").write_text(f"figures.data[{json.dumps(name)}] = {text};\n", encoding="utf-8")


def mark(page, tokens):
    """Makes a figure of each paragraph that is nothing but such a picture."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        children = token.children or []
        if before.type != "paragraph_open" or len(children) != 1 or children[0].type != "image":
            continue
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page), children[0].attrs["src"]))
        if place in figures():
            kind, name = figures()[place]
            before.tag = after.tag = "figure"
            before.attrs.update({"data-figure": kind, "data-name": name, **({"data-keeps": "picture"} if place in KEPT else {})})
            before.hidden = after.hidden = False
