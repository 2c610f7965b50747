"""Where the numbers of a page come from.

A number is recorded (made from a record), derived (made by arithmetic), from a source (a link beside it leads there), or noted
(measured once; only on pages of docs/lab, below a line that says when, on what and how). A measured quantity that is none of
these is a problem.
"""
import re
import shlex

from program import UserError
from records import ROOT

LAB = re.compile(r"docs/lab/[\w-]+\.md")

UNITS = r"µs|ms|[TMG]?FLOP/s|[GT]B/s|MHz|GHz|W|J|pJ"
RELATIVE = r"of cuBLASLt\b|(?:×| times) the speed of cuBLASLt\b|% (?:faster|slower)\b"
AMOUNT = r"\d[\d.,]*(?: (?:to|and|or) \d[\d.,]*)?"
MEASURED = re.compile(rf"{AMOUNT} ?(?:(?:{UNITS})(?![\w/])|{RELATIVE})")
# What a person has to decide: many of these are arithmetic that the sentence itself shows.
PERHAPS = re.compile(rf"(?<![\w.]){AMOUNT} ?(?:%|×(?! ?\d)|times\b)")
# In a table, the heading of a column may have the unit, and the cells below it numbers only.
UNIT_OF_COLUMN = re.compile(rf"(?<![\w/])(?:us|mJ|{UNITS})(?![\w/])")
NOT_MEASURED = re.compile(r"(?i)\b(?:predict|limit|peak|bound|at (?:most|least)\b|ceiling|budget|arithmetic|needs?\b|model|data sheet|specified)")
NUMBER_ONLY = re.compile(r"[*~≈<>≤≥±+−-]*\d[\d.,]*(?! ?[×x]|\w)")
MARK = re.compile(r"<!--\s*number:\s*([^>]*?)\s*-->(.*?)<!--\s*/number\s*-->")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _blank(text, pattern):
    return re.sub(pattern, lambda found: "\n" * found[0].count("\n"), text)


def plain(text):
    """The sentences, and tables made by hand: no code, no generated block, a dash for every marked number. Lines keep their numbers."""
    text = _blank(text, r"(?ms)^[ \t]*(```|~~~).*?^[ \t]*\1[ \t]*$")
    text = _blank(text, r"(?ms)^<!--\s*(?!number)([\w-]+):[^\n]*-->[ \t]*$.*?^<!--\s*/\1\s*-->")
    text = MARK.sub("–", text)
    return _blank(text, r"`[^`\n]*`|\]\([^)\s]+\)|(?s:<!--.*?-->)")


def _places(pattern, text):
    for found in pattern.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def _noted_lines(text):
    """The lines of a page that a line `<!-- noted: ... -->` covers: those below it, up to a heading of its section's level; all
    if it stands above the first section."""
    covered, level, since = set(), 0, None
    for number, line in enumerate(text.split("\n"), 1):
        heading = re.match(r"(#+) ", line)
        if heading:
            if since is not None and len(heading[1]) <= since:
                since = None
            level = len(heading[1])
        elif re.match(r"<!--\s*noted:", line):
            if level < 2:
                return range(1, text.count("\n") + 2)
            since = level
        if since is not None:
            covered.add(number)
    return covered


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _in_columns(text):
    """(line, number with its column's heading) of the cells of tables made by hand whose unit is in the heading."""
    headings, before = [], ""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("|"):
            headings = []
        elif re.fullmatch(r"[|\s:-]+", line) and "-" in line:
            headings = _cells(before)
        elif headings:
            cells = _cells(line)
            for heading, cell in zip(headings, cells):
                found = NUMBER_ONLY.match(cell)
                if found and UNIT_OF_COLUMN.search(heading) and not NOT_MEASURED.search(f"{heading} {cells[0]}") and not MEASURED.search(cell):
                    yield number, f"{found[0]} ({heading})"
        before = line


def unmarked(name, text):
    """(line, quantity) of every measured quantity of the page `name` that has no origin."""
    noted = _noted_lines(text) if LAB.fullmatch(name) else ()
    text = plain(text)
    for line, found in sorted([*_places(MEASURED, text), *_in_columns(text)], key=lambda place: place[0]):
        if line not in noted:
            yield line, found


def undecided(name, text):
    """(line, number) of shares and factors without a mark."""
    noted = _noted_lines(text) if LAB.fullmatch(name) else ()
    for line, found in _places(PERHAPS, plain(text)):
        if line not in noted:
            yield line, found


def _rest_of_paragraph(text, at):
    """From `at` to the end of the paragraph, the list item or the row of a table."""
    end = re.compile(r"\n\s*(?:\n|[*|-] |\|)").search(text, at)
    return text[at:end.start() if end else len(text)]


def _leads_to(document, target, numbers):
    """Whether a link of the page leads out of this repository, or to a file with all these numbers."""
    if re.match(r"https?://", target):
        return True
    path = target.partition("#")[0]
    file = document.parent / path if path else document
    if not file.is_file():
        return False
    text = file.read_text(encoding="utf-8")
    if file == document:  # a table or another sentence has it
        text = MARK.sub(lambda mark: "" if mark[1] == "source" else mark[2], text)
    return numbers <= set(NUMBER.findall(re.sub(r"<!--.*?-->", "", text)))


def source_problems(name, text):
    """(line, what is wrong) of every number whose source is not beside it, or does not have it."""
    document = ROOT / name
    for found in MARK.finditer(text):
        if found[1] != "source":
            continue
        line = text.count("\n", 0, found.start()) + 1
        rest = _rest_of_paragraph(text, found.start())
        targets = LINK.findall(rest)
        numbers = set(NUMBER.findall(re.sub(r"\]\([^)]*\)", "", found[2])))
        if not targets:
            yield line, f"'{found[2]}' has no link to its source after it"
        elif not any(_leads_to(document, target, numbers) for target in targets):
            yield line, f"'{found[2]}' is not on a page that the sentence links"


def count(text):
    """{kind: how many} of the marks of a page."""
    counts = {}
    for found in MARK.finditer(text):
        word = found[1].split()[0] if found[1] else ""
        kind = word if word in ("derived", "source") else "recorded"
        counts[kind] = counts.get(kind, 0) + 1
    return counts


NOTED = ("date", "card", "commit", "command")


def make_noted(specification, document):
    """The sentence of a line `<!-- noted: date=... card="..." commit=... command="..." [mode=...] [kernels=gone] -->`."""
    name = str(document.relative_to(ROOT)) if document.is_relative_to(ROOT) else str(document)
    if not LAB.fullmatch(name):
        raise UserError("a number that was noted and has no record stands on a page of docs/lab only; link it from here.")
    try:
        fields = dict(word.split("=", 1) for word in shlex.split(specification))
    except ValueError:
        raise UserError('a note is date=2026-11-25 card="NVIDIA H200" commit=1c4bcfbd command="tools/..."') from None
    missing = [field for field in NOTED if not fields.get(field)]
    if missing:
        raise UserError(f"the note lacks {' and '.join(missing)}.")
    wrong = set(fields) - {*NOTED, "mode", "kernels"}
    if wrong:
        raise UserError(f"a note has no field '{min(wrong)}'; the known ones are {', '.join(NOTED)}, mode and kernels.")
    if not re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", fields["date"]) or not re.fullmatch(r"[0-9a-f]{7,40}", fields["commit"]):
        raise UserError("a note has its date as 2026-11-25 and its commit as 7 or more hexadecimal digits.")
    if fields.get("kernels", "gone") != "gone":
        raise UserError("kernels=gone is the only value: kernels that were compared and not kept.")
    mode = fields.get("mode", "burst")
    again = "Only today's kernel can be run again" if "kernels" in fields else "To repeat it"
    return [f"*The numbers on this page that do not come from a record were measured on {fields['date']} on an {fields['card']} ({mode}, commit {fields['commit']}). "
            f"{again}: `{fields['command']}`.*"]
