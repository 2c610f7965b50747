"""Generated parts of Markdown: what stands between two markers is replaced by what a function returns.

  <!-- KIND: SPECIFICATION -->
  <!-- /KIND -->                       a block, on lines of its own
  <!-- KIND: SPECIFICATION -->text<!-- /KIND -->   inside a sentence
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
            raise UserError(f"line {number}: the {kind} has no end; write <!-- /{kind} --> after it.")
        try:
            out += ["", *make(begin.group(1), document), ""]
        except UserError as error:
            raise UserError(f"line {number}: {error}") from None
        out.append(lines[at])
        at += 1
    return "\n".join(out)


def rewrite_sentences(text, document, kind, make):
    """`text` with every mark of this kind inside a sentence made anew by make(specification, old text, document)."""
    begin, end = re.compile(rf"<!--\s*{kind}:\s*([^>]*?)\s*-->"), re.compile(rf"<!--\s*/{kind}\s*-->")
    out, fence = [], None
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line)
        if mark and fence in (None, mark.group(1)):
            fence = None if fence else mark.group(1)
        made, at = "", 0
        while not fence and (found := begin.search(line, at)):
            close = end.search(line, found.end())
            if not close or begin.search(line, found.end(), close.start()):
                raise UserError(f"line {number}: the {kind} has no end; write <!-- /{kind} --> after it, in the same line.")
            try:
                value = make(found.group(1), line[found.end():close.start()], document)
            except UserError as error:
                raise UserError(f"line {number}: {error}") from None
            made += line[at:found.end()] + value + close[0]
            at = close.end()
        out.append(made + line[at:])
    return "\n".join(out)


def documents():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("steps/*/README.md")]
    return sorted(path for path in found if path.exists())


def markdown(headings, right, rows):
    """A table as lines; right[i] says whether column i is aligned to the right."""
    lines = ["| " + " | ".join(headings) + " |",
             "|" + "|".join(" ---: " if is_right else " --- " for is_right in right) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def run(script, description, makers, differs):
    """The command line of a generator: [--check] [FILE.md ...]. Returns the exit status.

    makers: kind -> make(specification, document), which returns lines; or ("sentence", make), which returns text.
    differs: what --check says of a file that is not as it would be written.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS, prog=script)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    return program.run(script, lambda: _write_or_check(script, parser.parse_args(), makers, differs))


def _rewrite_all(text, document, makers):
    for kind, make in makers.items():
        if isinstance(make, tuple):
            text = rewrite_sentences(text, document, kind, make[1])
        else:
            text = rewrite(text, document, kind, make)
    return text


def _write_or_check(script, arguments, makers, differs):
    status, changed = 0, []
    for path in arguments.files or documents():
        path = path.resolve()
        try:
            text = path.read_text(encoding="utf-8")
            new = _rewrite_all(text, path, makers)
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
            print(f"{relative(path)}: {differs}; run {script}.", file=sys.stderr)
        return status or (1 if changed else 0)
    if status:
        return status  # nothing is written unless everything could be made
    for path, new in changed:
        write_whole(path, new)
        print(f"wrote {relative(path)}")
    return 0
