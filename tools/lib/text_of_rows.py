"""A record whose `rows` are objects, as text with a line for each of them, so that a difference can be read."""
import json


def text_of_rows(record):
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in record.items() if key != "rows")
    rows = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in record["rows"])
    return f'{{\n{head}"rows": [\n{rows}\n]\n}}\n'
