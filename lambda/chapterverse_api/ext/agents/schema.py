"""The owner's JSON Schemas: reads them by name and validates data.

It takes the keywords of JSON Schema (draft 2020-12) that model services take, too. A schema with any other keyword is
rejected, because data could break a rule that is not checked. References are resolved when a schema is read.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from chapterverse.errors import InputError
from chapterverse.text.json_text import parse_json
from chapterverse_api.draft.requests import ResponseSchema

#: Characters of a schema, which is sent with each question, and parts of it once its references are resolved.
_MAX_SCHEMA_CHARS, _MAX_PARTS = 8_000, 500
#: How deep parts may be nested: model services take less.
_MAX_LEVELS = 16

_DEFINITIONS = ("$defs", "definitions")
_NOTES = {"$schema", "$id", "$comment", "title", "description", "default", "examples", "format", *_DEFINITIONS}
_REFERENCE = re.compile(r"#/(?:\$defs|definitions)/([^/~%]+)")
_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": int | float,
    "integer": int | float,
}


def _listed(rule: Any) -> list[Any]:
    return rule if isinstance(rule, list) else [rule]


def _is_of_type(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _is_pattern(rule: Any) -> bool:
    try:
        return bool(re.compile(rule))
    except (re.error, TypeError, RecursionError, OverflowError):
        return False


def _json_equal(a: Any, b: Any) -> bool:
    """Whether two values are equal in JSON, where true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_json_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_json_equal(a[key], b[key]) for key in a)
    return bool(a == b)


def _is_among(value: Any, values: Sequence[Any]) -> bool:
    return any(_json_equal(value, one) for one in values)


def _fits_one(value: Any, schemas: Sequence[Mapping[str, Any]]) -> bool:
    return any(problem(value, schema) is None for schema in schemas)


def _is_unique(items: Sequence[Any], rule: Any) -> bool:
    return not rule or not any(_is_among(item, items[:i]) for i, item in enumerate(items))


class _Keyword(NamedTuple):
    """A keyword with a rule for a whole value.

    Attributes:
        type: the type of the values that the rule is for; "" for values of any type.
        fits: whether a value fits the rule.
        problem: the end of a sentence about a value that does not; "{}" is replaced by the rule.
    """

    type: str
    fits: Callable[[Any, Any], bool]
    problem: str


_KEYWORDS = {
    "enum": _Keyword("", _is_among, "must be one of the values that are listed for it"),
    "const": _Keyword("", _json_equal, "must be the value that is given for it"),
    "anyOf": _Keyword("", _fits_one, "must fit one of its alternatives"),
    "minLength": _Keyword("string", lambda value, count: len(value) >= count, "must hold at least {} characters"),
    "maxLength": _Keyword("string", lambda value, count: len(value) <= count, "must hold at most {} characters"),
    "pattern": _Keyword("string", lambda value, pattern: bool(re.search(pattern, value)), "must match its pattern"),
    "minItems": _Keyword("array", lambda value, count: len(value) >= count, "must hold at least {} items"),
    "maxItems": _Keyword("array", lambda value, count: len(value) <= count, "must hold at most {} items"),
    "uniqueItems": _Keyword("array", _is_unique, "must not hold an item twice"),
    "minimum": _Keyword("number", operator.ge, "is beyond its minimum"),
    "maximum": _Keyword("number", operator.le, "is beyond its maximum"),
    "exclusiveMinimum": _Keyword("number", operator.gt, "is beyond its exclusiveMinimum"),
    "exclusiveMaximum": _Keyword("number", operator.lt, "is beyond its exclusiveMaximum"),
}

#: Whether the rule of a keyword has the form that its check expects. A schema with other keywords is rejected.
_FORMS: dict[str, Callable[[Any], bool]] = {
    "type": lambda rule: all(isinstance(name, str) and name in _TYPES for name in _listed(rule)),
    "properties": lambda rule: isinstance(rule, dict),
    "additionalProperties": lambda rule: isinstance(rule, bool | dict),
    "anyOf": lambda rule: isinstance(rule, list) and rule != [],
    "pattern": _is_pattern,
    **dict.fromkeys(("required", "enum"), lambda rule: isinstance(rule, list)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), lambda rule: type(rule) is int),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), lambda rule: type(rule) in (int, float)
    ),
    **dict.fromkeys(("items", "const", "uniqueItems"), lambda _: True),
}


def read_schema(name: str, folder: str) -> ResponseSchema:
    """Return a schema of the owner's folder, or else of the examples.

    Raises:
        InputError: there is no schema of this name, or it can't be used.
    """
    places: list[Traversable] = [resources.files(__package__).joinpath("schemas"), Path(folder)]
    found = (file for place in places if place.is_dir() for file in place.iterdir())
    # Of two with one name the later is the owner's.
    files = {file.name.removesuffix(".json"): file for file in found if file.name.endswith(".json")}
    if name not in files:
        raise InputError(f"output names no schema of this site: there are {', '.join(sorted(files))}.", field="output")
    try:
        document = parse_json(files[name].read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"The schema {name} can't be read: it is no JSON in UTF-8.", field="output") from None
    return ResponseSchema(name, parse_schema(name, document))


def parse_schema(name: str, document: Any, *, empty: bool = False) -> dict[str, Any]:
    """Return a schema with its references resolved, after checking that all of it is understood.

    Args:
        empty: whether it may be one of an object without members.

    Raises:
        InputError: it can't be used.
    """
    resolved = _Resolver(name, document).resolve(document)
    if resolved.get("type") != "object" or not (empty or resolved.get("properties")):
        raise InputError(f"The schema {name} must be of the type object, with properties.", field="output")
    if len(json.dumps(resolved)) > _MAX_SCHEMA_CHARS:
        raise InputError(
            f"The schema {name} is longer than {_MAX_SCHEMA_CHARS} characters and is sent with every question: shorten"
            " it.",
            field="output",
        )
    return resolved


def problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return what keeps a value from fitting a schema, in a few words behind its JSON pointer; None if it fits."""
    return next(_problems(value, schema, ""), None)


class _Resolver:
    """Checks one schema and replaces each reference by its target."""

    def __init__(self, name: str, document: Any) -> None:
        self._name, self._parts = name, 0
        defined = [document.get(key) for key in _DEFINITIONS] if isinstance(document, dict) else []
        self._defined = {key: part for one in defined if isinstance(one, dict) for key, part in one.items()}

    def resolve(self, part: Any, inside: tuple[str, ...] = (), depth: int = 0) -> dict[str, Any]:
        """Return a part with its references resolved.

        Raises:
            InputError: a schema must not have this part.
        """
        self._parts += 1
        if not isinstance(part, dict) or depth > _MAX_LEVELS or self._parts > _MAX_PARTS:
            raise self._unusable("has a part that is no object, or too many of them")
        if "$ref" in part:
            return self._follow(part["$ref"], inside, depth)
        unknown = next((key for key in part if key not in _NOTES and key not in _FORMS), None)
        if unknown is not None:
            raise self._unusable(f"holds {str(unknown)[:40]!a}, which is no keyword that is checked here")
        if not all(_FORMS[key](rule) for key, rule in part.items() if key in _FORMS):
            raise self._unusable("has a keyword whose value is of the wrong kind")
        inner = partial(self.resolve, inside=inside, depth=depth + 1)
        resolved = {key: rule for key, rule in part.items() if key not in (*_DEFINITIONS, "$schema", "$id")}
        if "properties" in part:
            resolved["properties"] = {key: inner(value) for key, value in part["properties"].items()}
        if "items" in part:
            resolved["items"] = inner(part["items"])
        if isinstance(part.get("additionalProperties", False), dict):
            resolved["additionalProperties"] = inner(part["additionalProperties"])
        if "anyOf" in part:
            resolved["anyOf"] = [*map(inner, part["anyOf"])]
        return resolved

    def _follow(self, reference: Any, inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        if reference == "#" or (match and match[1] in inside):
            raise InputError(f"The schema {self._name} refers to itself: write it without recursion.", field="output")
        if not match or match[1] not in self._defined:
            raise self._unusable("refers to something that its $defs do not hold")
        return self.resolve(self._defined[match[1]], (*inside, match[1]), depth + 1)

    def _unusable(self, reason: str) -> InputError:
        return InputError(f"The schema {self._name} {reason}.", field="output")


def _problems(value: Any, schema: Mapping[str, Any], pointer: str) -> Iterator[str]:
    """Yield a sentence for each rule of the schema that a value breaks; `pointer` is its JSON pointer."""
    place = pointer or "the object"
    types = _listed(schema.get("type", []))
    if "type" in schema and not any(_is_of_type(value, one) for one in types):
        yield f"{place} must be of the type {' or '.join(types)}"
        return
    for name, keyword in _KEYWORDS.items():
        applies = name in schema and (not keyword.type or _is_of_type(value, keyword.type))
        if applies and not keyword.fits(value, schema[name]):
            yield f"{place} {keyword.problem.format(schema[name])}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{pointer}/{i}")
    elif isinstance(value, dict):
        yield from _member_problems(value, schema, pointer)


def _member_problems(value: Mapping[str, Any], schema: Mapping[str, Any], pointer: str) -> Iterator[str]:
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{pointer}/{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, member in value.items():
        if name in properties:
            yield from _problems(member, properties[name], f"{pointer}/{name}")
        elif additional is False:
            yield f"{pointer or 'the object'} holds a member that the schema does not have"
        elif isinstance(additional, dict):
            yield from _problems(member, additional, f"{pointer}/{name}")
