#!/usr/bin/env python3
"""Writes the code that pages quote, from the sources.

Usage: tools/excerpts.py [--check] [FILE.md ...]

Code stands between two markers; what is between them is replaced:
  <!-- code: SOURCE#REGION [comments=no] -->
  <!-- /code -->
  <!-- diff: SOURCE#REGION SOURCE#REGION -->      the old lines and the new ones; `none`: all lines are new
  <!-- /diff -->
SOURCE is the number of a step, for its kernel.cuh, or a path such as common/gemm/pipeline/ring.cuh. REGION is what the
source calls the lines between
  // ANCHOR: REGION
  // ANCHOR_END: REGION
Regions may overlap; these comments are left out. Lines that begin with a comment are left out of diffs, and of code with
comments=no.

Without files: README.md, CONTRIBUTING.md, docs/**/*.md and steps/*/README.md. --check changes nothing and fails if an
excerpt and its source differ.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import difflib
import re

import blocks
from program import UserError
from records import ROOT
from regions import region_of
from steps import steps


def folder_of(number):
    """The folder of the step with this number, from the root."""
    folder = next((step for step in steps() if step.startswith(number)), None)
    if folder is None or not re.fullmatch(r"\d\d", number):
        raise UserError(f"there is no step {number}.")
    return f"steps/{folder}"


def path_of(place):
    """The file and the region that SOURCE#REGION names."""
    name, hash_mark, region = place.partition("#")
    if not hash_mark or not region:
        raise UserError(f"'{place}' names no region: write SOURCE#REGION, for example 11#producer.")
    path = ROOT / (f"{folder_of(name)}/kernel.cuh" if re.fullmatch(r"\d\d", name) else name)
    if not path.is_file():
        raise UserError(f"there is no source {name}.")
    return path, region


def quoted(place):
    """The lines of SOURCE#REGION."""
    return region_of(*path_of(place))


def is_comment(line):
    return line.lstrip().startswith("//")


def make_code(specification, document):
    place, *options = specification.split()
    if options not in ([], ["comments=no"]):
        raise UserError(f"'{' '.join(options)}' is not an option of an excerpt; the only one is comments=no.")
    return ["```cpp", *(line for line in quoted(place) if not options or not is_comment(line)), "```"]


def make_diff(specification, document):
    places = specification.split()
    if len(places) != 2:
        raise UserError("a diff is SOURCE#REGION SOURCE#REGION, or none SOURCE#REGION.")
    old, new = ([] if place == "none" else [line for line in quoted(place) if not is_comment(line)] for place in places)
    if old == new:
        raise UserError(f"{places[0]} and {places[1]} have the same lines: there is nothing to show.")
    marked = []
    for what, old_begin, old_end, new_begin, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            marked += [f"  {line}" for line in new[new_begin:new_end]]
        else:
            marked += [f"- {line}" for line in old[old_begin:old_end]] + [f"+ {line}" for line in new[new_begin:new_end]]
    return ["```diff", *(line.rstrip() for line in marked), "```"]


if __name__ == "__main__":
    sys.exit(blocks.run("tools/excerpts.py", __doc__,
                        {"code": make_code, "diff": make_diff}, "an excerpt differs from its source"))
