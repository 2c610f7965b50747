#!/usr/bin/env python3
"""Writes the code that chapters quote, from the sources, and how long a chapter takes to read.

Usage: tools/excerpts.py [--check] [FILE.md ...]

Code stands between two markers; what is between them is replaced:
  <!-- code: SOURCE from="TEXT" [to="TEXT"] [after="TEXT"] -->
  <!-- /code -->
  <!-- diff: OLD NEW from="TEXT" [to=...] [after=...] [old_from=...] [old_to=...] [old_after=...] -->
  <!-- /diff -->
SOURCE, OLD and NEW are the number of a step, for its kernel.cuh, or a path such as common/gemm/ring.cuh. An excerpt begins
with the first line that contains `from`, behind the first line that contains `after` where that is given, and ends with the
next line that contains `to`. Without `to` it ends with the statement: where the braces and brackets that it opens are closed.
What a diff does not say of the old source is as in the new one; old_from="" stands for nothing, when all lines are new.
Lines that begin with a comment are left out of diffs, and of excerpts with comments=no.

<!-- number: minutes -->12<!-- /number --> is the time that a page takes: 160 words of prose a minute, 20 lines of code, half
a minute for each table, diagram and figure. <!-- number: minutes 08 09 --> is that of these chapters together.

Without files: README.md, CONTRIBUTING.md, docs/**/*.md and steps/*/README.md. --check changes nothing and fails if an
excerpt and its source differ.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import difflib
import math
import re
import shlex

import blocks
from program import UserError
from reading import minutes
from records import ROOT, nearest
from steps import steps

RANGE = ("from", "to", "after")


def folder_of(number):
    """The folder of the step with this number, from the root."""
    folder = next((step for step in steps() if step.startswith(number)), None)
    if folder is None or not re.fullmatch(r"\d\d", number):
        raise UserError(f"there is no step {number}.")
    return f"steps/{folder}"


def source(name):
    """The lines of a step's kernel, by its number, or of a file."""
    if re.fullmatch(r"\d\d", name):
        name = f"{folder_of(name)}/kernel.cuh"
    path = ROOT / name
    if not path.is_file():
        raise UserError(f"there is no source {name}.")
    return path.read_text(encoding="utf-8").split("\n")


def find(lines, text, begin, name, what):
    for at in range(begin, len(lines)):
        if text in lines[at]:
            return at
    raise UserError(f"no line of {name} has {what}=\"{text}\".")


def closed(lines, at):
    """The line behind `at` at which everything that was opened since then is closed, and the statement ends."""
    depth, opened = 0, False
    for end in range(at, len(lines)):
        code = re.sub(r"//.*|\"(?:[^\"\\]|\\.)*\"", "", lines[end])
        for mark in code:
            if mark in "({[":
                depth += 1
                opened |= mark == "{"
            elif mark in ")}]":
                depth -= 1
        text = code.rstrip()
        if depth <= 0 and (text.endswith(";") or text.endswith("}") and opened):
            return end
    return len(lines) - 1


def excerpt(name, options):
    lines = source(name)
    begin = find(lines, options["after"], 0, name, "after") + 1 if options.get("after") else 0
    first = find(lines, options["from"], begin, name, "from")
    if options.get("to"):
        last = find(lines, options["to"], first, name, "to")
    else:
        last = closed(lines, first)
    # Lines of the preprocessor begin at the margin, whatever is around them.
    chosen = lines[first:last + 1]
    margin = min((len(line) - len(line.lstrip()) for line in chosen if line.strip() and not line.startswith("#")), default=0)
    return [line if line.startswith("#") else line[margin:] for line in chosen]


def read_options(words, known):
    options = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in known:
            raise UserError(f"'{word}' is not an option of an excerpt; {nearest(key, sorted(known))}")
        options[key] = value
    if not options.get("from"):
        raise UserError('an excerpt needs from="...", a part of its first line.')
    return options


def split(specification):
    try:
        return shlex.split(specification)
    except ValueError as error:
        raise UserError(f"{specification}: {error}.") from None


def is_comment(line):
    return line.lstrip().startswith("//")


def make_code(specification, document):
    words = split(specification)
    if not words:
        raise UserError("an excerpt names no source.")
    options = read_options(words[1:], {*RANGE, "comments"})
    lines = excerpt(words[0], options)
    if options.get("comments") == "no":
        lines = [line for line in lines if not is_comment(line)]
    return ["```cpp", *lines, "```"]


def make_diff(specification, document):
    words = split(specification)
    if len(words) < 3:
        raise UserError('a diff is OLD NEW from="...".')
    options = read_options(words[2:], {*RANGE, *(f"old_{key}" for key in RANGE)})
    new = excerpt(words[1], options)
    was = {key: options.get(f"old_{key}", options.get(key)) for key in RANGE}
    old = excerpt(words[0], was) if was["from"] else []
    new, old = ([line for line in lines if not is_comment(line)] for lines in (new, old))
    if old == new:
        raise UserError(f"{words[0]} and {words[1]} have the same lines here: there is nothing to show.")
    marked = []
    for what, old_begin, old_end, new_begin, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            marked += [f"  {line}" for line in new[new_begin:new_end]]
        else:
            marked += [f"- {line}" for line in old[old_begin:old_end]] + [f"+ {line}" for line in new[new_begin:new_end]]
    return ["```diff", *(line.rstrip() for line in marked), "```"]


def make_minutes(specification, old, page):
    words = specification.split()
    if words[:1] != ["minutes"]:
        return old  # tools/tables.py makes it
    pages = [(ROOT / folder_of(number) / "README.md").read_text(encoding="utf-8") for number in words[1:]] or [page]
    return str(sum(math.ceil(minutes(text)) for text in pages))


if __name__ == "__main__":
    sys.exit(blocks.run("tools/excerpts.py", __doc__,
                        {"code": make_code, "diff": make_diff, "number": ("sentence", make_minutes)},
                        "an excerpt differs from its source"))
