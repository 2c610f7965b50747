"""Reading the records of timed runs (docs/results/*.json), for the table and plot generators."""
import json
import pathlib
import re

from nearest import nearest_word

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = 1


class UserError(Exception):
    """One sentence: what is wrong and what would be right."""


def nearest(word, known):
    """"; did you mean X? Known are ..." for a misspelt word."""
    return f"did you mean '{nearest_word(word, known)}'? Known are: {', '.join(known)}." if known else "none is known."


def relative(path):
    """A path as the messages show it."""
    try:
        return str(pathlib.Path(path).resolve().relative_to(ROOT))
    except ValueError:
        return str(path)


MODES = ("burst", "sustained")


def load_json(path):
    """What the file at `path` holds: a record, or the suite's two; UserError names what is wrong."""
    try:
        record = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"the record {relative(path)} does not exist.") from None
    except OSError as error:
        raise UserError(f"the record {relative(path)} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UserError(f"the record {relative(path)} is not JSON: {error}.") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise UserError(f"{relative(path)} is not a record of schema {SCHEMA}.")
    return record


def is_suite(record):
    return all(mode in record for mode in MODES)


def load_suite(path):
    """The two records and the summary of tools/compare --suite."""
    suite = load_json(path)
    if not is_suite(suite):
        raise UserError(f"{relative(path)} is not a record of the suite; make one with tools/compare --suite --json.")
    return suite


def load_record(path, mode=None):
    """The record at `path`, of the suite the part with this mode; UserError names what is missing."""
    record = load_json(path)
    if is_suite(record):
        if mode not in MODES:
            raise UserError(f"{relative(path)} is a record of the suite: write mode=burst or mode=sustained.")
        record = record[mode]
    elif mode not in (None, record.get("mode")):
        raise UserError(f"{relative(path)} was timed {record.get('mode')}, not {mode}.")
    if not record.get("shapes"):
        raise UserError(f"the record {relative(path)} has no timed shapes; time with tools/compare --json.")
    return record


def shape_name(shape):
    return f"{shape['m']}x{shape['n']}x{shape['k']}"


def pretty_shape(shape):
    m, n, k = shape["m"], shape["n"], shape["k"]
    return f"{m}³" if m == n == k else f"{m}×{n}×{k}"


def find_shape(record, text):
    """The shape `text` ("4096x4096x4096" or "4096") of a record."""
    if re.fullmatch(r"\d+", text):
        text = f"{text}x{text}x{text}"
    for shape in record["shapes"]:
        if shape_name(shape) == text:
            return shape
    raise UserError(f"shape={text} was not timed; the record has {', '.join(map(shape_name, record['shapes']))}.")


def default_shape(record):
    """4096³ where it was timed, otherwise the largest."""
    for shape in record["shapes"]:
        if shape_name(shape) == "4096x4096x4096":
            return shape
    return max(record["shapes"], key=lambda shape: shape["m"] * shape["n"] * shape["k"])


NAMES = {"cublas_default": "cuBLAS default", "cublaslt_best": "cuBLASLt best", "wgmma_ceiling": "wgmma-only ceiling"}


def pretty_name(contestant):
    return NAMES.get(contestant["name"], contestant["name"])


def selected(contestant, words):
    """True if one of `words` names the contestant: a step's number or name (":variant" may follow), a kind."""
    for word in words:
        name, _, variant = word.partition(":")
        if variant and variant != contestant["variant"]:
            continue
        if name in (contestant["name"], contestant["name"].partition("_")[0], contestant["kind"]):
            return True
    return False


def mode_text(record):
    """A number without its mode means nothing."""
    if record["mode"] == "burst":
        return f"burst ({record['idle_ms']:g} ms idle before each launch)"
    return "sustained (back to back)"


def write_whole(path, text):
    """Replaces a file in one step, so that nobody ever sees half of it; a pipe or a device is written to."""
    path = pathlib.Path(path)
    part = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UserError(f"{relative(path)} cannot be written: {error.strerror}.") from None
