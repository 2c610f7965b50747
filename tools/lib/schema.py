"""Checking what a file holds against the JSON Schemas of docs/schemas, with one sentence for what is wrong."""
import functools
import json
import math
import pathlib

import environment
from program import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/schemas"
TYPES = {"object": "an object", "array": "a list", "string": "a string", "number": "a number", "integer": "a whole number",
         "boolean": "true or false"}


def parse(text):
    """What JSON `text` holds. Raises ValueError, as json.loads does, for NaN and for what is nested too deeply as well."""
    def refuse(word):
        raise ValueError(f"{word} is no number of JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_leaves(value, "")
    return value


def _check_leaves(value, place):
    """Numbers are finite, and strings are text of one line."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_leaves(key, place)
            _check_leaves(item, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_leaves(item, f"{place}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place or 'it'} is too large a number")
    elif isinstance(value, str) and any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise ValueError(f"{place or 'it'} is a string with a character that cannot be printed")


@functools.cache
def _document(name):
    path = FOLDER / f"{name}.schema.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(f"docs/schemas/{path.name} is missing or damaged; it belongs to this repository ('git checkout "
                        f"docs/schemas' brings it back).") from None


@functools.cache
def _validator(name, part):
    environment.require("jsonschema")
    from jsonschema import Draft202012Validator, validators
    types = Draft202012Validator.TYPE_CHECKER.redefine_many({
        "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
        "number": lambda _, value: isinstance(value, (int, float)) and not isinstance(value, bool)})
    whole = _document(name)
    schema = {"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]} if part else whole
    return validators.extend(Draft202012Validator, type_checker=types)(schema)


def problem(value, name, part=None):
    """"" or what is wrong with `value`, by docs/schemas/NAME.schema.json, of which `part` names one definition."""
    error = next(_validator(name, part).iter_errors(value), None)
    return _sentence(error) if error else ""


def _place(path):
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _shown(value):
    if isinstance(value, (dict, list)):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)}" if value else f"an empty {kind.split()[1]}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(words):
    words = [str(word) for word in words]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _sentence(error):
    place, keyword, wanted = _place(error.absolute_path), error.validator, error.validator_value
    if keyword == "required":
        missing = next(name for name in wanted if name not in error.instance)
        return f"{place} lacks the field '{missing}'".lstrip()
    must = {
        "type": lambda: f"be {_listed(TYPES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))}",
        "enum": lambda: f"be {_listed(map(_shown, wanted))}", "const": lambda: f"be {_shown(wanted)}",
        "minimum": lambda: f"be at least {wanted}", "maximum": lambda: f"be at most {wanted}",
        "exclusiveMinimum": lambda: f"be more than {wanted}", "minLength": lambda: "not be empty",
        "minItems": lambda: f"have {wanted} or more", "maxItems": lambda: f"have {wanted} or fewer",
        "minProperties": lambda: f"have {wanted} or more", "uniqueItems": lambda: "hold nothing twice",
        "pattern": lambda: f"match {wanted}",
    }.get(keyword, lambda: f"fulfil the schema's '{keyword}'")()
    return f"{place or 'it'} is {_shown(error.instance)}; it must {must}"
