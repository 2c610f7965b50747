"""What is known of the steps before anything is built: steps/steps.json, which is what their programs say (compare --describe), without
the variants. `cmake --build build/emulator --target describe_steps` writes it, and a test compares it with the programs. It has a line for
each step, so that shell scripts and CMake find a field of a step with a regular expression.

Usage: compare --describe | tools/lib/steps.py >steps/steps.json
"""
import program  # noqa: F401 (first, for Ctrl-C)
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DESCRIPTIONS = "steps/steps.json"


def steps():
    """The folders in steps/ that have a kernel, in order."""
    return [kernel.parent.name for kernel in sorted(ROOT.glob("steps/[0-9][0-9]_*/kernel.cuh"))]


def descriptions():
    """{step: what it says of itself}, of those that steps/steps.json names."""
    try:
        return {step["name"]: step for step in json.loads((ROOT / DESCRIPTIONS).read_text(encoding="utf-8"))}
    except FileNotFoundError:
        return {}


def text_of_descriptions(described):
    """The text of steps/steps.json."""
    return "[\n" + ",\n".join(json.dumps({key: value for key, value in step.items() if key != "variants"}, ensure_ascii=False)
                              for step in described) + "\n]\n"


def builds_on(step):
    """The step that `step` continues: the one that it names, or the one before it; None for the first, and for what is not a
    step."""
    known = steps()
    if step not in known:
        return None
    before = known[:known.index(step)]
    return descriptions().get(step, {}).get("builds_on") or (before[-1] if before else None)


def navigation(step, chapters):
    """The line below the title of a chapter, which leads to its neighbours: the chapters, and what comes before and after them."""
    at = chapters.index(step)
    before = [f"[← {chapters[at - 1][:2]}](../{chapters[at - 1]}/README.md)"] if at > 0 else ["[← start here](../../docs/start.md)"]
    after = [f"[{chapters[at + 1][:2]} →](../{chapters[at + 1]}/README.md)"] if at + 1 < len(chapters) else ["[the pages behind the chapters →](../../docs/README.md)"]
    return " · ".join([*before, "[all steps](../../README.md#the-steps)", *after])


def sources(kernel, listing):
    """The line of a chapter that leads to its code: the kernel, of which this is the text, its machine code if there is a listing,
    and what the kernel includes of common/gemm."""
    included = re.findall(r'#include "(gemm/(?!launch/|problem/)[\w/.]+)"', kernel)
    links = ", ".join(f"[{pathlib.PurePath(file).name}](../../common/{file})" for file in included)
    return " · ".join(["[The whole kernel](kernel.cuh)", *(["[its machine code](sass.txt)"] if listing else []),
                       *([f"it uses {links}"] if links else [])])


if __name__ == "__main__":
    sys.stdout.write(text_of_descriptions(json.load(sys.stdin)))
