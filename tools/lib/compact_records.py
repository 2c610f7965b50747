"""Records without what no page shows: medians, quartiles and intervals stay; samples only where a page needs them round by round.

What a passed check says begins after its pattern and its number of elements.
"""
import json
import re

import blocks
import numbers_of_records
import records
import tables
from record_rules import rounds_of

DIGITS = 7  # as many as the time of an event has


def _make_all(path):
    """Makes every table and number that a page makes of this record, so that records.asked knows whose samples they take."""
    name = records.relative(path)

    def table(specification, document):
        return tables.make_table(specification, document) if f"record={name}" in specification.split() else []

    def number(specification, old, document):
        return numbers_of_records.make_number(specification, old, document) if path.stem in re.findall(r"\w+", specification) else old

    for document in blocks.documents():
        text = records.read_text(document, "the page")
        if path.stem in text:
            blocks.rewrite(text, document, "table", table)
            blocks.rewrite_sentences(text, document, "number", number)


def _shortened(value):
    if isinstance(value, float):
        value = float(f"{value:.{DIGITS}g}")
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    short = {key: _shortened(item) for key, item in value.items()}
    if "ok" in value:  # a check, whose pattern and shape say it already
        short["summary"] = re.sub(rf"^{value['pattern']}: all {value['m'] * value['n']} elements (?=\w)", "", value["summary"])
    if "schema" in value:
        short["schema"] = records.SCHEMAS[-1]
    for samples in ("samples_us", "samples"):
        if samples in value:
            short["rounds"] = rounds_of(value)
            if id(value) not in records.asked:
                del short[samples]
    return short


def _has_objects(value):
    """Whether a list of objects is in it, which has them one a line."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return any(isinstance(item, list) and any(isinstance(one, dict) for one in item) or _has_objects(item) for item in items)


def _text(value, indent=""):
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        lines = [f"{indent} {_text(item, indent + ' ')}" for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    if isinstance(value, dict) and _has_objects(value):
        lines = [f"{indent} {json.dumps(key)}: {_text(item, indent + ' ')}" for key, item in sorted(value.items())]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def compact(path):
    """The text of the record at `path`, which load() has found to be good."""
    path = path.resolve()
    record = records.load(path)
    _make_all(path)
    return _text(_shortened(record)) + "\n"
