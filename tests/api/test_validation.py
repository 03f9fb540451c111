from __future__ import annotations

from typing import Any

import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse_api.app import create_app

CANARY = "cAnArY"
OF_TYPE = "The filter on type takes no $or, only $eq, $in, $prefix, $contains."
OR = "In a filter $or needs a list of filters, each with a field."
OPERATORS = "A filter uses no known operator; known are $and, $or, $eq, $in, $gt, $gte, $lt, $lte, $prefix, $contains."


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        ({}, "query", "query is missing; it may be left out only beside selected_text."),
        ({"query": None}, "query", "query is missing; it may be left out only beside selected_text."),
        ({"query": 5}, "query", "query must be text."),
        ({"query": ""}, "query", "query must hold at least one letter or digit."),
        ({"query": "🎉🎉"}, "query", "query must hold at least one letter or digit."),
        ({"query": "a" * 4001}, "query", "query must hold at most 4000 characters."),
        ({"query": "日本語" * 1333}, "query", "query is over 1000 tokens."),
        ({"query": "a", "top_k": 0}, "top_k", "top_k must be at least 1."),
        ({"query": "a", "top_k": 21}, "top_k", "top_k must be at most 20."),
        ({"query": "a", "top_k": "5"}, "top_k", "top_k must be a whole number."),
        ({"query": "a", "top_k": True}, "top_k", "top_k must be a whole number."),
        ({"query": "a", "thread_id": "a b"}, "thread_id", "thread_id holds a character that is not allowed here."),
        ({"query": "a", "filters": []}, "filters", "filters must be an object."),
        ({"query": "a", "filters": None}, "filters", "filters must be an object."),
        ({"query": "a", "filters": {"tags": CANARY, "$or": CANARY}}, "filters", OR),
        ({"query": "a", "filters": {"type": {CANARY: {}}}}, "filters", OPERATORS),
        ({"query": "a", "conversation_history": {}}, "conversation_history", "conversation_history must be a list."),
        (
            {"query": "a", "conversation_history": [{"role": "user", "content": "a"}] * 11},
            "conversation_history",
            "conversation_history must hold at most 10 items.",
        ),
        (
            {"query": "a", "conversation_history": [{"role": "user", "content": "a" * 4000}] * 5},
            "conversation_history",
            "conversation_history is over 16000 characters in all.",
        ),
        (
            {"query": "a", "conversation_history": [{"role": CANARY, "content": "a"}]},
            "conversation_history.0.role",
            "conversation_history.0.role must be 'user' or 'assistant'.",
        ),
        (
            {"query": "a", "conversation_history": [{"role": "user"}]},
            "conversation_history.0.content",
            "conversation_history.0.content is missing.",
        ),
        (
            {"query": "a", "conversation_history": [CANARY]},
            "conversation_history.0",
            "conversation_history.0 must be an object.",
        ),
        (
            {"query": "a", "conversation_history": [{"role": "user", "content": "a", CANARY: 1}]},
            "conversation_history.0",
            "conversation_history.0 holds a field that the contract does not have.",
        ),
        ({"query": "a", CANARY: CANARY}, None, "The body holds a field that the contract does not have."),
        ({"query": "a", "threshold": 0.5}, "threshold", "threshold is no field of this request."),
        (
            {"query": "a", "conversation_history": [{"role": "user", "content": "a", "query": "b"}]},
            "conversation_history.0.query",
            "conversation_history.0.query is no field of this request.",
        ),
    ],
)
def test_a_breach_names_the_field_and_the_rule_and_never_the_value(
    document: dict[str, Any], field: str | None, sentence: str
) -> None:
    service = Scripted()
    response = Client(create_app(service)).post("/v1/chat", document)
    error = error_of(response)
    assert (response.status_code, error["code"]) == (422, "out_of_contract")
    assert (error.get("field"), error["message"]) == (field, sentence)
    assert CANARY not in response.text
    assert service.asked == []


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        ({}, "query", "query or embedding must be given, and not both."),
        ({"query": "a", "embedding": [0.1]}, "query", "query or embedding must be given, and not both."),
        ({"query": "a", "language": "de"}, "language", "language is no field of this request."),
        ({"embedding": []}, "embedding", "embedding must hold at least 1 items."),
        ({"embedding": ["0.1"]}, "embedding.0", "embedding.0 must be a number."),
        ({"query": "a", "threshold": 2}, "threshold", "threshold must be at most 1."),
        ({"query": "a", "filters": {"type": {"$or": []}}}, "filters", OF_TYPE),
    ],
)
def test_a_breach_of_a_retrieval(document: dict[str, Any], field: str | None, sentence: str) -> None:
    error = error_of(Client(create_app(Scripted())).post("/v1/retrieve", document))
    assert (error.get("field"), error["message"]) == (field, sentence)
