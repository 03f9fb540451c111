"""The contract in OpenAPI; the tests of the routes show that it holds."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from chapterverse.errors import InputError
from chapterverse.filters import MAX_FILTER_DEPTH
from chapterverse_api.contract import ChatQuery, Feedback, RetrievalRequest, Signature

FILTERS: list[dict[str, Any]] = [
    {"tags": ["a", "b"]},
    {"tags": {"$in": ["a"]}},
    {"tags": {}},
    {"tags": 1},
    {"tags": {"$gt": "a"}},
    {"chunk_index": 0},
    {"chunk_index": {"$gte": 1, "$lt": 9}},
    {"chunk_index": "0"},
    {"chunk_index": {"$prefix": "0"}},
    {"created_at": {"$gte": "2026-01-01"}},
    {"created_at": 2026},
    {"nothing": "a"},
    {"$or": []},
    {"$or": [{}]},
    {"$or": [{"type": "faq"}, {"url": {"$contains": "a"}}]},
    {"$not": {"type": "faq"}},
]
NESTED: list[dict[str, Any]] = [{"tags": "a"}]
for _ in range(MAX_FILTER_DEPTH):
    NESTED.append({"$and": [NESTED[-1]]})


@pytest.mark.parametrize(
    ("model", "field", "limits"),
    [
        (ChatQuery, "query", {"minLength": 1, "maxLength": 4000}),
        (ChatQuery, "selected_text", {"minLength": 1, "maxLength": 5000}),
        (RetrievalRequest, "query", {"minLength": 1, "maxLength": 4000}),
        (Feedback, "turn_id", {"pattern": "^[0-9a-f]{32}$"}),
        (Signature, "key_id", {"pattern": "^[0-9a-f]{16}$"}),
        (Signature, "tag", {"pattern": "^[0-9a-f]{64}$"}),
        (Signature, "previous", {"pattern": "^([0-9a-f]{64})?$"}),
        (Signature, "expiry", {"minimum": 0, "maximum": 253_402_300_799}),
    ],
)
def test_a_limit_with_a_sentence_of_its_own_is_told(model: type[BaseModel], field: str, limits: dict[str, Any]) -> None:
    told = model.model_json_schema()["properties"][field]
    told = next(iter(told.get("anyOf", [told])))
    assert {name: told.get(name) for name in limits} == limits


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (ChatQuery, {}),
        (ChatQuery, {"query": None, "user_context": "a"}),
        (ChatQuery, {"query": "a"}),
        (ChatQuery, {"selected_text": "a"}),
        (ChatQuery, {"query": "a", "selected_text": "a"}),
        (RetrievalRequest, {}),
        (RetrievalRequest, {"query": "a"}),
        (RetrievalRequest, {"embedding": [0.5]}),
        (RetrievalRequest, {"query": "a", "embedding": [0.5]}),
        (RetrievalRequest, {"query": "a", "embedding": None}),
        (RetrievalRequest, {"embedding": [1e300]}),
        *((ChatQuery, {"query": "a", "filters": filters}) for filters in [*NESTED, *FILTERS]),
    ],
)
def test_the_schema_takes_what_the_service_takes(model: type[BaseModel], document: dict[str, Any]) -> None:
    try:
        model.model_validate(document)
        taken = True
    except (ValidationError, InputError):
        taken = False
    assert Draft202012Validator(model.model_json_schema()).is_valid(document) == taken
