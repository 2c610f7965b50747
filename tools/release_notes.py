#!/usr/bin/env python3
"""Prints the notes of a release: the section of CHANGELOG.md that a tag names.

Usage: tools/release_notes.py TAG [--links URL]

A tag is v and the heading of its section: v1.0.0 for "## 1.0.0". --links says where the files of that tag are shown;
relative links then lead there, for outside of the repository they lead nowhere.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import re

from nearest import nearest_word
from program import UserError

CHANGELOG = pathlib.Path(__file__).resolve().parents[1] / "CHANGELOG.md"
UNRELEASED = "Unreleased"


def sections(text):
    """{heading: what stands below it}."""
    parts = re.split(r"(?m)^## (.*)$", text)
    return dict(zip(map(str.strip, parts[1::2]), map(str.strip, parts[2::2])))


def notes(tag, links):
    found = sections(CHANGELOG.read_text(encoding="utf-8"))
    name = tag.removeprefix("v")
    released = [heading for heading in found if heading != UNRELEASED]
    if not tag.startswith("v") or name not in released:
        known = f"did you mean 'v{nearest_word(name, released)}'?" if released else "it has none of a release yet."
        raise UserError(f"CHANGELOG.md has no section for the tag '{tag}'; {known} A release's section begins with '## {name}', and its tag "
                        f"is 'v{name}'.")
    if not found[name]:
        raise UserError(f"the section '{name}' of CHANGELOG.md is empty.")
    return re.sub(r"\]\((?![a-z]+:|#)", f"]({links}/", found[name]) if links else found[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("tag", metavar="TAG")
    parser.add_argument("--links", default="", metavar="URL")
    arguments = parser.parse_args()
    print(notes(arguments.tag, arguments.links.rstrip("/")))
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/release_notes.py", main))
