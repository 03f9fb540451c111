"""The OpenAPI document says of every request and answer what it has always said, however it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from api.scripted import Scripted
from chapterverse.settings import Settings
from chapterverse_api.app import create_app

#: Paths and schemas of November 2026, with all that settings switch on.
KNOWN = json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8"))

_REFERENCE = "#/components/schemas/"


def meaning(part: Any, schemas: Mapping[str, Any]) -> Any:
    """Return a part of a document with its references replaced, and without what changes no meaning."""
    if isinstance(part, list):
        return [meaning(item, schemas) for item in part]
    if not isinstance(part, dict):
        return part
    rest = {name: value for name, value in part.items() if name != "$ref" and not _says_nothing(name, value)}
    whole = {name: meaning(value, schemas) for name, value in rest.items()}
    if isinstance(whole.get("required"), list):
        whole["required"] = sorted(whole["required"])
    if "$ref" in part:
        whole |= meaning(schemas[part["$ref"].removeprefix(_REFERENCE)], schemas)
    return whole


def _says_nothing(name: str, value: object) -> bool:
    # A field may be named "title" too; then it has a schema.
    return (name == "title" and isinstance(value, str)) or (name == "additionalProperties" and value is True)


def test_the_document_means_what_it_has_meant() -> None:
    document = create_app(Scripted(settings=Settings(mcp=True, records="sqlite:conversations.db"))).openapi()
    schemas = document["components"]["schemas"]
    assert list(document["paths"]) == list(KNOWN["paths"])
    for path, known in KNOWN["paths"].items():
        assert meaning(document["paths"][path], schemas) == meaning(known, KNOWN["schemas"]), path


def test_another_meaning_is_seen() -> None:
    text, number = {"T": {"title": "T", "type": "string"}}, {"T": {"type": "integer"}}
    reference = {"schema": {"$ref": "#/components/schemas/T"}}
    assert meaning(reference, text) == {"schema": {"type": "string"}} != meaning(reference, number)
    assert meaning({"required": ["b", "a"]}, {}) == meaning({"required": ["a", "b"]}, {}) != meaning({}, {})
