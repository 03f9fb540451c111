"""The models of the six types of documents, their messages and their schemas."""

from __future__ import annotations

from typing import Any

import pytest

from chapterverse.errors import InputError
from chapterverse.ext.knowledge.metadata import METADATA_BY_TYPE, get_schemas, validate_metadata
from chapterverse.model import DOCUMENT_TYPES

COMMON = {"type", "timestamp", "source", "scope"}


def test_every_type_has_its_fields() -> None:
    schemas = get_schemas()
    assert tuple(schemas) == tuple(METADATA_BY_TYPE) == DOCUMENT_TYPES
    fields = {name: set(schema["fields"]) - COMMON for name, schema in schemas.items()}
    assert {"version", "topic"} <= fields["persona"]
    assert {"topic", "_specialist_name", "_version"} <= fields["faq"]
    assert {"importance", "tags", "entity", "conversation_id"} <= fields["memory"]
    assert fields["turn"] == {"conversation_id", "role", "turn_index"}
    assert fields["summary"] == {"conversation_id", "turn_range", "summary_index"}
    for name, schema in schemas.items():
        assert schema["document_type"] == name
        assert set(schema["fields"]) == set(schema["schema"]["properties"]) >= COMMON
        assert schema["required_fields"] == schema["schema"]["required"]
        assert "type" in schema["required_fields"]


def test_what_is_not_stated_has_a_default() -> None:
    faq = validate_metadata("faq", {"_version": 1.5})
    assert (faq.type, faq.source, faq.scope, faq.revision, faq.topic) == ("faq", "kb", "global", "1.5", None)
    assert faq.timestamp.endswith("Z")
    assert validate_metadata("memory", {"timestamp": "2026-01-31"}).timestamp == "2026-01-31T00:00:00Z"
    assert validate_metadata("memory", {"tags": ["a"], "scope": "entity:Acme Ltd."}).importance == 3


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        ("banana", {}, "type must be one of page, persona, faq, memory, turn, summary."),
        ("faq", {"type": "memory"}, "type must be faq."),
        ("memory", {"importance": 10}, "importance must be a whole number from 1 to 5."),
        ("memory", {"importance": True}, "importance must be a whole number from 1 to 5."),
        ("memory", {"entity": "a/b"}, "entity must be 1 to 64 letters, digits, spaces and any of . _ -, such as "),
        ("memory", {"scope": "entity:../x"}, "scope must be global or entity:NAME, such as entity:enterprise."),
        ("memory", {"tags": "a"}, "tags must be a list of at most 100 texts of 1 to 200 characters."),
        ("memory", {"conversation_id": "a b"}, "conversation_id must be 1 to 64 letters, digits, - and _."),
        ("faq", {"banana": 1}, "'banana' is no field of a faq: there are timestamp, source, scope, type, topic, "),
        ("faq", {1: 1}, "'1' is no field of a faq"),
        ("faq", {"timestamp": "soon"}, "timestamp must be a date such as 2026-01-31."),
        ("turn", {"conversation_id": "a"}, "role is missing: it must be user or assistant."),
        (
            "summary",
            {"conversation_id": "a", "summary_index": 0, "turn_range": [3, 1]},
            "turn_range must be two whole numbers from 0, the first not above the last.",
        ),
    ],
)
def test_a_mistake_is_one_sentence(kind: str, given: dict[Any, Any], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        validate_metadata(kind, given, "faq/a.md")
    assert str(raised.value).startswith(f"faq/a.md: {sentence}")
