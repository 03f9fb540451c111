"""The owner's JSON Schemas: reads them by name and validates data.

It takes the keywords of JSON Schema (draft 2020-12) that model services take, too. A schema with any other keyword is
rejected, because data could break a rule that is not checked. References are resolved when a schema is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from chapterverse.errors import InputError
from chapterverse.text.json_text import parse_json
from chapterverse_api.generation.requests import ResponseSchema

#: Characters of a schema, which is sent with each question, and parts of it once its references are resolved.
MAX_SCHEMA_CHARS, _MAX_PARTS = 8_000, 500
#: How deep parts may be nested: model services take less.
_MAX_LEVELS = 16

_NOTES = {"$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "$defs", "definitions"}
_RULES = {
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "minItems", "maxItems",
    "uniqueItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
}  # fmt: skip
_REFERENCE = re.compile(r"#/(?:\$defs|definitions)/([^/~%]+)")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int, float),
}


def read_schema(name: str, folder: str) -> ResponseSchema:
    """Return a schema of the owner's folder, or else of the examples.

    Raises:
        InputError: there is no schema of this name, or it can't be used.
    """
    files = {file.name.removesuffix(".json"): file for file in _files(folder)}
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
    resolved = _Resolver(name, document).resolve()
    if resolved.get("type") != "object" or not (empty or resolved.get("properties")):
        raise InputError(f"The schema {name} must be of the type object, with properties.", field="output")
    if len(json.dumps(resolved)) > MAX_SCHEMA_CHARS:
        raise InputError(
            f"The schema {name} is longer than {MAX_SCHEMA_CHARS} characters and is sent with every question: shorten"
            " it.",
            field="output",
        )
    return resolved


def problem(value: Any, schema: Mapping[str, Any], at: str = "") -> str | None:
    """Return what keeps a value from fitting a schema, in a few words behind its place; None if it fits."""
    return next(_problems(value, schema, at), None)


def _files(folder: str) -> Iterator[Traversable]:
    """Yield the schemas by file; of two with one name the later is the owner's."""
    places: list[Traversable] = [resources.files(__package__).joinpath("examples"), Path(folder)]
    for place in places:
        if place.is_dir():
            yield from (file for file in place.iterdir() if file.name.endswith(".json"))


class _Resolver:
    """Checks one schema and replaces each reference by its target."""

    def __init__(self, name: str, document: Any) -> None:
        self._name = name
        self._document = document
        self._parts = 0
        defined = [document.get(key) for key in ("$defs", "definitions")] if isinstance(document, dict) else []
        self._defined = {key: part for one in defined if isinstance(one, dict) for key, part in one.items()}

    def resolve(self) -> dict[str, Any]:
        return self._resolve(self._document, (), 0)

    def _resolve(self, part: Any, inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        """Return a part with its references resolved. Raises `InputError` for what no schema of ours may have."""
        self._parts += 1
        if not isinstance(part, dict) or depth > _MAX_LEVELS or self._parts > _MAX_PARTS:
            raise self._unusable("has a part that is no object, or too many of them")
        if "$ref" in part:
            return self._follow(part["$ref"], inside, depth)
        unknown = next((key for key in part if key not in _NOTES and key not in _RULES), None)
        if unknown is not None:
            raise self._unusable(f"holds {str(unknown)[:40]!a}, which is no keyword that is checked here")
        self._check(part)
        made = {key: value for key, value in part.items() if key not in ("$defs", "definitions", "$schema", "$id")}

        def inner(value: Any) -> dict[str, Any]:
            return self._resolve(value, inside, depth + 1)

        if "properties" in part:
            made["properties"] = {key: inner(value) for key, value in part["properties"].items()}
        if "items" in part:
            made["items"] = inner(part["items"])
        if isinstance(part.get("additionalProperties", False), dict):
            made["additionalProperties"] = inner(part["additionalProperties"])
        if "anyOf" in part:
            made["anyOf"] = [inner(value) for value in part["anyOf"]]
        return made

    def _follow(self, reference: Any, inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        if reference == "#" or (found and found[1] in inside):
            raise InputError(f"The schema {self._name} refers to itself: write it without recursion.", field="output")
        if not found or found[1] not in self._defined:
            raise self._unusable("refers to something that its $defs do not hold")
        return self._resolve(self._defined[found[1]], (*inside, found[1]), depth + 1)

    def _check(self, part: Mapping[str, Any]) -> None:
        """Check that every rule has the form that `problem` expects."""
        kinds = part.get("type", [])
        forms = (
            all(isinstance(k, str) and k in _TYPES for k in (kinds if isinstance(kinds, list) else [kinds])),
            isinstance(part.get("properties", {}), dict),
            isinstance(part.get("required", []), list),
            isinstance(part.get("additionalProperties", False), bool | dict),
            isinstance(part.get("enum", []), list),
            isinstance(part.get("anyOf", [{}]), list) and part.get("anyOf", [{}]) != [],
            all(type(part[key]) is int for key in ("minItems", "maxItems", "minLength", "maxLength") if key in part),
            all(type(part[key]) in (int, float) for key in _LIMITS if key in part),
            _is_pattern(part.get("pattern", "")),
        )
        if not all(forms):
            raise self._unusable("has a keyword whose value is of the wrong kind")

    def _unusable(self, reason: str) -> InputError:
        return InputError(f"The schema {self._name} {reason}.", field="output")


def _is_pattern(pattern: Any) -> bool:
    try:
        return bool(re.compile(pattern))
    except (re.error, TypeError, RecursionError, OverflowError):
        return False


_LIMITS = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
}


def _problems(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield a sentence for each rule of the schema that a value breaks; `at` is its JSON pointer."""
    place = at or "the object"
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in (kinds if isinstance(kinds, list) else [kinds])):
        yield f"{place} must be of the type {' or '.join(kinds) if isinstance(kinds, list) else kinds}"
        return
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield f"{place} must be one of the values that are listed for it"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{place} must be the value that is given for it"
    if "anyOf" in schema and all(problem(value, one, at) for one in schema["anyOf"]):
        yield f"{place} must fit one of its alternatives"
    if isinstance(value, str):
        yield from _length(len(value), schema, place, "Length", "characters")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{place} must match its pattern"
    elif isinstance(value, list):
        yield from _length(len(value), schema, place, "Items", "items")
        if schema.get("uniqueItems") and any(_same(a, b) for i, a in enumerate(value) for b in value[:i]):
            yield f"{place} must not hold an item twice"
        for i, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{at}/{i}")
    elif isinstance(value, dict):
        yield from _members(value, schema, at)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (f"{place} is beyond its {key}" for key, holds in _LIMITS.items() if not _holds(value, schema, key))


def _holds(value: float, schema: Mapping[str, Any], key: str) -> bool:
    return key not in schema or bool(_LIMITS[key](value, schema[key]))


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], at: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{at}/{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, member in value.items():
        if name in known:
            yield from _problems(member, known[name], f"{at}/{name}")
        elif others is False:
            yield f"{at or 'the object'} holds a member that the schema does not have"
        elif isinstance(others, dict):
            yield from _problems(member, others, f"{at}/{name}")


def _length(length: int, schema: Mapping[str, Any], place: str, of: str, unit: str) -> Iterator[str]:
    if length < schema.get(f"min{of}", 0):
        yield f"{place} must hold at least {schema[f'min{of}']} {unit}"
    if length > schema.get(f"max{of}", length):
        yield f"{place} must hold at most {schema[f'max{of}']} {unit}"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal in JSON, where true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return bool(a == b)
