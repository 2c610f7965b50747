"""Checking what a file holds against the JSON Schemas of docs/schemas, with one sentence for what is wrong."""
import functools
import json
import math
import pathlib
import re

import environment
from program import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/schemas"
TYPES = {"object": "an object", "array": "a list", "string": "a string", "number": "a number", "integer": "a whole number",
         "boolean": "true or false"}
UNPRINTABLE = re.compile("[\0-\x1f\ud800-\udfff]")


def parse(text):
    """What JSON `text` holds. Raises ValueError, as json.loads does, for NaN and for what is nested too deeply as well."""
    def refuse(word):
        raise ValueError(f"{word} is not a number in JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_leaves(value)
    return value


def _check_leaves(value, steps=()):
    """Numbers are finite, and strings are text of one line."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{_place(steps) or 'it'} is too large a number")
    elif isinstance(value, str):
        if UNPRINTABLE.search(value):
            raise ValueError(f"{_place(steps) or 'it'} is a string with a character that cannot be printed")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_leaves(key, steps)
            _check_leaves(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_leaves(item, (*steps, index))


@functools.cache
def _document(name):
    path = FOLDER / f"{name}.schema.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(f"docs/schemas/{path.name} is missing or damaged; it belongs to this repository ('git checkout "
                        f"docs/schemas' brings it back).") from None


def _without_references(schema, definitions):
    """The same schema, with each definition at the places that name it: to look it up there takes half of the time."""
    if isinstance(schema, list):
        return [_without_references(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: _without_references(item, definitions) for key, item in schema.items()
            if key not in ("$ref", "$defs") and (key, type(item)) != ("description", str)}
    if "$ref" not in schema:
        return rest
    named = _without_references(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    return {"allOf": [named], **rest} if rest else named


@functools.cache
def _validator(name, part):
    environment.require("jsonschema")
    from jsonschema import Draft202012Validator, validators
    types = Draft202012Validator.TYPE_CHECKER.redefine_many({
        "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
        "number": lambda _, value: isinstance(value, (int, float)) and not isinstance(value, bool)})
    whole = _document(name)
    schema = _without_references(whole["$defs"][part] if part else whole, whole.get("$defs", {}))
    one_by_one = Draft202012Validator.VALIDATORS["items"]

    def items(validator, wanted, instance, schema):
        """Lists of numbers are most of a record: those that are as they must be are not looked at one by one."""
        if isinstance(instance, list) and isinstance(wanted, dict) and wanted.get("type") == "number":
            least, below = wanted.get("minimum", -math.inf), wanted.get("exclusiveMinimum", -math.inf)
            if wanted.keys() <= {"type", "minimum", "exclusiveMinimum"} and all(
                    type(item) in (int, float) and item >= least and item > below for item in instance):
                return
        yield from one_by_one(validator, wanted, instance, schema)

    return validators.extend(Draft202012Validator, {"items": items}, type_checker=types)(schema)


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
