"""Regions of sources that pages quote, marked as mdBook marks them:

  // ANCHOR: producer
  ...
  // ANCHOR_END: producer

Regions may overlap. Their marks are no part of what is quoted.
"""
import re

from program import UserError
from records import ROOT, nearest

MARK = re.compile(r"^\s*// (ANCHOR|ANCHOR_END): ([a-z][a-z0-9_]*)$")


def without_marks(lines):
    return [line for line in lines if not MARK.match(line)]


def regions(text, name):
    """Of every region of a source: its lines. Throws where marks do not pair up."""
    found, begins, lines = {}, {}, text.split("\n")
    for at, line in enumerate(lines):
        if not (mark := MARK.match(line)):
            continue
        what, region = mark.groups()
        if what == "ANCHOR":
            if region in begins:
                raise UserError(f"{name} begins the region '{region}' twice.")
            begins[region] = at + 1
        elif region not in begins or region in found:
            raise UserError(f"{name} ends the region '{region}', which it has not begun.")
        else:
            found[region] = without_marks(lines[begins[region]:at])
            while found[region] and not found[region][-1].strip():  # a blank line parts the mark from a trailing comment
                found[region].pop()
    for region in begins:
        if region not in found:
            raise UserError(f"{name} begins the region '{region}' and does not end it; write // ANCHOR_END: {region} after it.")
    return found


def region_of(path, region):
    """The lines of one region of a file under the root, moved to the margin."""
    name = path.relative_to(ROOT).as_posix()
    found = regions(path.read_text(encoding="utf-8"), name)
    if region not in found:
        raise UserError(f"{name} has no region '{region}'" + (f"; {nearest(region, sorted(found))}" if found else "."))
    # Lines of the preprocessor begin at the margin, whatever is around them.
    code = [line for line in found[region] if line.strip() and not line.startswith("#")]
    margin = min((len(line) - len(line.lstrip()) for line in code), default=0)
    return [line if line.startswith("#") else line[margin:] for line in found[region]]
