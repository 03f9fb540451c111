from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.errors import InputError
from chapterverse_api.ext.agents.schema import parse_schema, problem, read_schema

PLAIN: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


def test_the_examples_can_be_used() -> None:
    for name in ("recipes", "tasks", "products"):
        schema = read_schema(name, "/nowhere")
        jsonschema.Draft202012Validator.check_schema(schema.document)
        assert schema.name == name


def test_the_owners_schema_goes_before_an_example(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(PLAIN))
    assert read_schema("tasks", str(tmp_path)).document == PLAIN


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b"NaN"])
def test_a_file_that_is_no_schema_is_told_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(InputError, match="The schema bad"):
        read_schema("bad", str(tmp_path))


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(InputError, match="there are products, recipes, tasks") as error:
        read_schema("nothing", "/nowhere")
    assert error.value.field == "output"


def test_references_are_resolved() -> None:
    part = {"type": "string", "minLength": 1}
    document = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/b"}, "c": {"type": "array", "items": {"$ref": "#/$defs/b"}}},
        "$defs": {"b": part},
    }
    assert parse_schema("x", document)["properties"] == {"a": part, "c": {"type": "array", "items": part}}


@pytest.mark.parametrize(
    "document",
    [
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/b"}}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
        },
    ],
)
def test_recursion_is_rejected_in_a_sentence(document: Any) -> None:
    with pytest.raises(InputError, match=r"^The schema tree refers to itself: write it without recursion\.$"):
        parse_schema("tree", document)


def bomb() -> dict[str, Any]:
    """Return a schema that is small until its references are resolved."""
    levels = {f"l{i}": {"anyOf": [{"$ref": f"#/$defs/l{i + 1}"}] * 10} for i in range(12)} | {"l12": {"type": "null"}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": levels}


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"type": "array", "items": PLAIN},
        {"type": "object"},
        {**PLAIN, "if": {}},
        {**PLAIN, "$ref": "https://example.com/schema"},
        {**PLAIN, "required": "name"},
        {**PLAIN, "type": ["object", 5]},
        {**PLAIN, "properties": {"a": {"pattern": "("}}},
        {**PLAIN, "properties": {"a": {"minLength": "1"}}},
        {**PLAIN, "properties": {"a": {"anyOf": []}}},
        {**PLAIN, "description": "x" * 9000},
        bomb(),
    ],
)
def test_a_schema_that_is_not_understood_is_rejected(document: Any) -> None:
    with pytest.raises(InputError, match=r"^The schema x [^\n]*\.$"):
        parse_schema("x", document)


SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0]) | st.sampled_from(["", "a", "ab"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
KINDS = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "const": SCALARS,
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.just("^a"),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "minimum": st.integers(-1, 1),
            "exclusiveMaximum": st.integers(-1, 2),
            "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": st.booleans() | inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_it_validates_as_the_reference_does(schema: dict[str, Any], value: Any) -> None:
    assert (problem(value, schema) is None) == jsonschema.Draft202012Validator(schema).is_valid(value)
