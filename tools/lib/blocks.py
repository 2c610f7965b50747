"""Generated blocks in Markdown: what stands between two markers is replaced by what a function returns.

  <!-- KIND: SPECIFICATION -->
  <!-- /KIND -->
"""
import argparse
import pathlib
import re
import sys

import program
from program import UserError
from records import ROOT, relative, write_whole

FENCE = re.compile(r"^\s*(```|~~~)")


def rewrite(text, document, kind, make):
    """`text` with every block of this kind made anew by make(specification, document), which returns lines."""
    begins = re.compile(rf"^<!--\s*{kind}:\s*(.*?)\s*-->\s*$")
    ends = re.compile(rf"^<!--\s*/{kind}\s*-->\s*$")
    out, lines, fence, at = [], text.split("\n"), None, 0
    while at < len(lines):
        line = lines[at]
        out.append(line)
        at += 1
        mark = FENCE.match(line)
        if mark and fence in (None, mark.group(1)):
            fence = None if fence else mark.group(1)
        begin = None if fence else begins.match(line)
        if not begin:
            continue
        number = at
        while at < len(lines) and not ends.match(lines[at]):
            if begins.match(lines[at]):
                at = len(lines)
                break
            at += 1
        if at >= len(lines):
            raise UserError(f"line {number}: the table has no end; write <!-- /{kind} --> after it.")
        try:
            out += ["", *make(begin.group(1), document), ""]
        except UserError as error:
            raise UserError(f"line {number}: {error}") from None
        out.append(lines[at])
        at += 1
    return "\n".join(out)


def documents():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("steps/*/README.md")]
    return sorted(path for path in found if path.exists())


def markdown(headings, right, rows):
    """A table as lines; right[i] says whether column i is aligned to the right."""
    lines = ["| " + " | ".join(headings) + " |",
             "|" + "|".join(" ---: " if is_right else " --- " for is_right in right) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def run(script, description, kind, make):
    """The command line of a generator: [--check] [FILE.md ...]. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    return program.run(script, lambda: _write_or_check(script, arguments, kind, make))


def _write_or_check(script, arguments, kind, make):
    status, changed = 0, []
    for path in arguments.files or documents():
        path = path.resolve()
        try:
            text = path.read_text(encoding="utf-8")
            new = rewrite(text, path, kind, make)
        except FileNotFoundError:
            print(f"{relative(path)}: there is no such file.", file=sys.stderr)
            status = 2
            continue
        except (OSError, UnicodeDecodeError) as error:
            print(f"{relative(path)}: cannot be read: {error}.", file=sys.stderr)
            status = 2
            continue
        except UserError as error:
            print(f"{relative(path)}: {error}", file=sys.stderr)
            status = 2
            continue
        if new != text:
            changed.append((path, new))
    if arguments.check:
        for path, _ in changed:
            print(f"{relative(path)}: a table differs from its record; run {script}.", file=sys.stderr)
        return status or (1 if changed else 0)
    if status:
        return status  # nothing is written unless everything could be made
    for path, new in changed:
        write_whole(path, new)
        print(f"wrote {relative(path)}")
    return 0
