"""Pages that tools/emulate --html writes, recorded by tools/figures/record_reports.py, and the links to them."""
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
    """{command: what its page is made of}; a command ends with the name of the page."""
    return packed_json.read(repository.ROOT / REPORTS)


def sources():
    """What the pages are made of."""
    places = (place for data in examples().values() for outer in data["report"]["places"] for place in (outer, *outer.get("inside", [])))
    return sorted({REPORTS, *(place["file"] for place in places)})


def write(site):
    (site / FOLDER).mkdir()
    for command, data in examples().items():
        (site / FOLDER / command.split()[-1]).write_text(report_page.page(data, {}), encoding="utf-8")


def link(page, tokens):
    """Below a block of commands, the pages that they write."""
    root = posixpath.relpath(".", posixpath.dirname(page) or ".")
    for token in tokens:
        if token.type == "fence" and (names := [line.split()[-1] for line in token.content.splitlines() if line in examples()]):
            shown = ", ".join(f'<a href="{root}/{FOLDER}/{name}">{name}</a>' for name in names)
            token.meta["below"] = f'<p class="origin">Result: {shown}</p>\n'
