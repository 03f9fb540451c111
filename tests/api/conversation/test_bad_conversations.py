"""Invalid conversations: one clear rejection each, which names the field and quotes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse_api.app import create_app
from chapterverse_api.contract import dump
from chapterverse_api.conversation.transcript import Signer

CANARY = "cAnArY"
MARK = dump(Signer().sign("0" * 32, "f" * 64, "q", "a"))
HISTORY = "conversation_history"
FIRST = f"{HISTORY}.0"


def history(*messages: Any) -> dict[str, Any]:
    return {"query": "a", HISTORY: list(messages)}


def said(content: Any = "a", role: Any = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def marked(**changes: Any) -> dict[str, Any]:
    """Return a question whose history has one answer with a mark that was changed; a field that is None is left out."""
    mark = {name: value for name, value in {**MARK, **changes}.items() if value is not None}
    return history(said(role="assistant", signature=mark))


def mark(name: str) -> str:
    return f"{FIRST}.signature.{name}"


CASES: list[tuple[dict[str, Any], str | None, str]] = [
    (history(*[said()] * 11), HISTORY, f"{HISTORY} must hold at most 10 items."),
    (history(*[said("a" * 3201)] * 5), HISTORY, f"{HISTORY} is over 16000 characters in all."),
    ({"query": "a", HISTORY: None}, HISTORY, f"{HISTORY} must be a list."),
    ({"query": "a", HISTORY: "a"}, HISTORY, f"{HISTORY} must be a list."),
    (history([]), FIRST, f"{FIRST} must be an object."),
    (history(None), FIRST, f"{FIRST} must be an object."),
    (history({}), f"{FIRST}.role", f"{FIRST}.role is missing."),
    *(
        (history(said(role=role)), f"{FIRST}.role", f"{FIRST}.role must be 'user' or 'assistant'.")
        for role in ("system", "tool", "developer", "User", "ASSISTANT", "", CANARY, None, 1, ["user"])
    ),
    (history(said("")), f"{FIRST}.content", f"{FIRST}.content must hold at least 1 characters."),
    (history(said("a" * 4001)), f"{FIRST}.content", f"{FIRST}.content must hold at most 4000 characters."),
    (history(said(["a"])), f"{FIRST}.content", f"{FIRST}.content must be text."),
    (history(said({"type": "text", "text": CANARY})), f"{FIRST}.content", f"{FIRST}.content must be text."),
    (history(said(None)), f"{FIRST}.content", f"{FIRST}.content must be text."),
    (history(said(), said("")), f"{HISTORY}.1.content", f"{HISTORY}.1.content must hold at least 1 characters."),
    (history(said(timestamp=1)), f"{FIRST}.timestamp", f"{FIRST}.timestamp must be text."),
    (history(said(timestamp="1" * 65)), f"{FIRST}.timestamp", f"{FIRST}.timestamp must hold at most 64 characters."),
    (history(said(name=CANARY)), FIRST, f"{FIRST} holds a field that the contract does not have."),
    (history(said(signature="x")), f"{FIRST}.signature", f"{FIRST}.signature must be an object."),
    (marked(tag=MARK["tag"][:-1]), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag=MARK["tag"] + "0"), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag=""), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag=MARK["tag"].upper()), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag="é" * 64), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag="٣" * 64), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag=MARK["tag"][:-1] + "\n"), mark("tag"), f"{mark('tag')} must be 64 hexadecimal digits."),
    (marked(tag=7), mark("tag"), f"{mark('tag')} must be text."),
    (marked(tag=None), mark("tag"), f"{mark('tag')} is missing."),
    (marked(previous="f" * 63), mark("previous"), f"{mark('previous')} must be empty or 64 hexadecimal digits."),
    (marked(key_id=MARK["key_id"][:-1]), mark("key_id"), f"{mark('key_id')} must be 16 hexadecimal digits."),
    (marked(turn_id="1"), mark("turn_id"), f"{mark('turn_id')} must be 32 hexadecimal digits."),
    (marked(expiry=-1), mark("expiry"), f"{mark('expiry')} must be a time in seconds since 1970."),
    (marked(expiry=2**53), mark("expiry"), f"{mark('expiry')} must be a time in seconds since 1970."),
    (marked(expiry=1.5), mark("expiry"), f"{mark('expiry')} must be a whole number."),
    (marked(expiry="1"), mark("expiry"), f"{mark('expiry')} must be a whole number."),
    (marked(extra=CANARY), f"{FIRST}.signature", f"{FIRST}.signature holds a field that the contract does not have."),
    ({"query": "a" * 4001}, "query", "query must hold at most 4000 characters."),
    ({"query": "a" + " a" * 1000}, "query", "query is over 1000 tokens."),
    ({"query": "", "selected_text": "a"}, "query", "query must hold at least one letter or digit."),
    ({"query": " \n"}, "query", "query must hold at least one letter or digit."),
    ({"selected_text": "a" * 5001}, "selected_text", "selected_text must hold at most 5000 characters."),
    ({"selected_text": ""}, "selected_text", "selected_text must hold at least one letter or digit."),
    ({"query": "a", "user_context": "a" * 10_001}, "user_context", "user_context must hold at most 10000 characters."),
    ({"query": "a", "thread_id": ""}, "thread_id", "thread_id must hold at least 1 characters."),
    ({"query": "a", "thread_id": "a" * 65}, "thread_id", "thread_id must hold at most 64 characters."),
    ({"query": "a", "mode": "selected_text"}, None, "The body holds a field that the contract does not have."),
]


@pytest.mark.parametrize(("document", "field", "sentence"), CASES)
def test_a_breach_is_one_refusal(document: dict[str, Any], field: str | None, sentence: str) -> None:
    service = Scripted()
    for accept in ("application/json", "text/event-stream"):
        response = Client(create_app(service)).post("/v1/chat", document, headers={"accept": accept})
        error = error_of(response)
        assert (response.status_code, error["code"]) == (422, "out_of_contract")
        assert (error.get("field"), error["message"]) == (field, sentence)
        assert CANARY not in response.text
    assert service.asked == []


@pytest.mark.parametrize(
    "document",
    [
        history(*[said()] * 10),
        history(*[said("a" * 4000)] * 4),
        history(said("😀" * 4000)),
        history(said(role="assistant"), said(role="assistant")),
        history(said(" ")),
        history(said(signature=None, timestamp=None)),
        marked(),
        marked(previous="", expiry=0),
        marked(tag="0" * 64, key_id="0" * 16),
        {"query": "a" + " a" * 999},
        {"query": "日" * 900},
        {"selected_text": "a" * 5000},
        {"query": "a" * 4000},
    ],
)
def test_what_is_just_within_the_contract_is_asked(document: dict[str, Any]) -> None:
    service = Scripted()
    assert Client(create_app(service)).post("/v1/chat", document).status_code == 200
    assert len(service.asked) == 1
