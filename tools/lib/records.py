"""Reading the records of timed runs (docs/results/*.json), for the table and plot generators."""
import functools
import os
import pathlib
import re

import record_rules
import schema
from nearest import nearest_word
from program import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = (1, 2)  # as the programs write it; as tools/records compact leaves it


def nearest(word, known):
    """"; did you mean X? Known are ..." for a misspelt word."""
    return f"did you mean '{nearest_word(word, known)}'? The known ones are: {', '.join(known)}." if known else "none is known."


def relative(path):
    """A path as the messages show it."""
    try:
        return str(pathlib.Path(path).resolve().relative_to(ROOT))
    except ValueError:
        return str(path)


MODES = ("burst", "sustained")
# What a record is, by the fields that only it has; in this order, as in docs/schemas/record.schema.json.
FIELDS = {"figures": "roofline", "burst": "suite", "claims": "measuring", "profiler": "counters", "cells": "sweep",
          "copies": "copied", "gathers": "gathered", "shapes": "timed", "rounds": "timed", "checks": "checks"}
TITLES = {"roofline": "the limits of a GPU (tools/roofline)", "suite": "the suite (tools/compare --suite --json)",
          "measuring": "ways of timing (tools/measuring --json)", "counters": "a profiler's counters (tools/counters.py)",
          "sweep": "tile sizes (tools/sweep --json)", "copied": "copies between GPUs (tools/run 60 --json)", "gathered": "products over GPUs (tools/run 61 or 62 --json)", "timed": "a timed run (tools/compare --json)",
          "checks": "verifications without times"}


def read_text(path, what):
    """The text of a file."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{what} {relative(path)} does not exist.") from None
    except OSError as error:
        raise UserError(f"{what} {relative(path)} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{what} {relative(path)} is not text: byte {error.start} is not UTF-8.") from None


def read_json(path, what="the record"):
    """What the JSON file at `path` holds."""
    try:
        return schema.parse(read_text(path, what))
    except ValueError as error:
        raise UserError(f"{what} {relative(path)} is not JSON: {error}.") from None


def kind_of(record):
    """Which of TITLES it is, by its fields; None for something else."""
    return next((kind for field, kind in FIELDS.items() if field in record), None) if isinstance(record, dict) else None


@functools.cache
def _read(path):
    """(record, its kind) of the file at `path`, of which more is not known yet."""
    record = read_json(path)
    if not isinstance(record, dict) or type(record.get("schema")) is not int or record["schema"] not in SCHEMAS:
        raise UserError(f"{relative(path)} is not a record of schema {' or '.join(map(str, SCHEMAS))}.")
    kind = kind_of(record)
    if kind is None:
        raise UserError(f"{relative(path)} is not a record of a known kind; such a record has one of {', '.join(FIELDS)}.")
    return record, kind


@functools.cache
def _problem(path):
    record, kind = _read(path)
    return schema.problem(record, "record", kind) or next(record_rules.PROBLEMS[kind](record), "")


def load(path, *kinds):
    """The record at `path`, checked against its schema and in itself; UserError names what is wrong. Each is read once.

    With `kinds` it must be one of them.
    """
    record, kind = _read(path)
    if kinds and kind not in kinds:
        wanted = " or ".join(TITLES[one] for one in kinds)
        raise UserError(f"{relative(path)} is not a record of {wanted}, but of {TITLES[kind]}.")
    if problem := _problem(path):
        raise UserError(f"the record {relative(path)} is damaged: {problem}.")
    return record


def forget():
    """Files are read again."""
    _read.cache_clear()
    _problem.cache_clear()


def load_record(path, mode=None):
    """The record of one timed run at `path`, of the suite the part with this mode; UserError names what is missing."""
    record = load(path, "timed", "sweep", "suite")
    if kind_of(record) == "suite":
        if mode not in MODES:
            raise UserError(f"{relative(path)} is a record of the suite: write mode=burst or mode=sustained.")
        return record[mode]
    if mode not in (None, record["mode"]):
        raise UserError(f"{relative(path)} was timed {record['mode']}, not {mode}.")
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


NAMES = {"cublas_default": "cuBLAS default", "cublaslt_best": "cuBLASLt best", "cublaslt_first": "cuBLASLt, its first choice",
         "cublaslt_unfused": "cuBLASLt, then one kernel",
         "cublaslt_fast": "cuBLASLt, fast accumulation", "cublaslt_promoted": "cuBLASLt, promoted",
          "cublas_grouped": "cuBLAS grouped", "cublaslt_loop": "cuBLASLt in a graph", "cublaslt_batch": "cuBLASLt's strided batch",
          "wgmma_ceiling": "wgmma-only ceiling", "deepgemm": "DeepGEMM"}


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


asked = set()  # id() of every contestant whose samples were wanted: what tools/records compact keeps


def paired(one, other):
    """Times of `other` over those of `one`, round by round; None where there are too few rounds for an interval."""
    counts = {record_rules.rounds_of(contestant) for contestant in (one, other)}
    if len(counts) > 1 or min(counts) < record_rules.LEAST_ROUNDS:
        return None
    for contestant in (one, other):
        asked.add(id(contestant))
        if "samples_us" not in contestant:
            raise UserError(f"the compact record keeps no samples of {' '.join(record_rules.identity(contestant)).strip()}, and a "
                            "ratio round by round needs them; make the record compact again from that of the run.")
    return [b / a for a, b in zip(one["samples_us"], other["samples_us"])]


def write_whole(path, text):
    """Replaces a file with text or bytes in one step, so that half of it is never seen; a pipe or a device is written to."""
    content = text if isinstance(text, bytes) else text.encode()
    path = pathlib.Path(os.path.realpath(path))  # what a link points to is replaced, not the link
    part = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{relative(path)} cannot be written: {error.strerror}.") from None
