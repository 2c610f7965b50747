"""Pages about reports, as tools/emulate --html writes them: those that tools/figures/record_reports.py has recorded, and the links to them."""
import functools
import posixpath
import sys

import repository

sys.path.append(str(repository.ROOT / "tools/figures"))
import packed_json  # noqa: E402 (the path comes first)
import report_page  # noqa: E402

REPORTS = "docs/figures/reports.json.xz"
FOLDER = "reports"  # of the site


@functools.cache
def examples():
    """{command: the name of the page that it writes}."""
    return {command: command.split()[-1] for command in packed_json.read(repository.ROOT / REPORTS)}


def sources():
    """What the pages are made of."""
    reports = packed_json.read(repository.ROOT / REPORTS).values()
    places = (place for data in reports for outer in data["report"]["places"] for place in (outer, *outer.get("inside", [])))
    return sorted({REPORTS, *(place["file"] for place in places)})


def write(site):
    (site / FOLDER).mkdir()
    for command, data in packed_json.read(repository.ROOT / REPORTS).items():
        (site / FOLDER / examples()[command]).write_text(report_page.page(data, {}), encoding="utf-8")


def link(page, tokens):
    """Below a block of commands, the pages that they write."""
    root = posixpath.relpath(".", posixpath.dirname(page) or ".")
    for token in tokens:
        if token.type == "fence" and (names := [examples()[line] for line in token.content.splitlines() if line in examples()]):
            shown = ", ".join(f'<a href="{root}/{FOLDER}/{name}">{name}</a>' for name in names)
            token.meta["below"] = f'<p class="origin">What {"they write" if len(names) > 1 else "it writes"}: {shown}</p>\n'
