"""Short texts of the Cohere generator; the official SDK is the oracle of the request."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from api.draft.cohere.drafts import (
    BROKE_OFF,
    NO_REPLY,
    NOTHING,
    REQUEST,
    TEXT,
    generator,
    written,
)
from chapterverse.errors import ProviderError
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import ChatMessage, ModelRequest, ResponseSchema
from fakes.cohere_chat import ChatReply
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import LONG, SOON, Fault, leaving


def test_writing_sends_what_the_sdk_sends(server: CohereServer) -> None:
    cohere = pytest.importorskip("cohere")
    import httpx

    server.say(*[ChatReply("How is a key rotated?", thinking="Hm.")] * 2)
    ours = generator(server).write(ModelRequest("Rephrase.", (ChatMessage("user", "and that?"),), 60, Deadline(5)))
    with httpx.Client() as http:
        sdk = cohere.ClientV2(KEY, base_url=server.url, httpx_client=http)
        theirs = sdk.chat(
            model="command-a-03-2025",
            messages=[{"role": "system", "content": "Rephrase."}, {"role": "user", "content": "and that?"}],
            thinking={"type": "disabled"},
            temperature=0.1,
            max_tokens=60,
        )
    first, second = server.history
    assert (first.path, first.body) == (second.path, second.body)
    assert "documents" not in first.body
    assert ours == theirs.message.content[1].text == "How is a key rotated?"


def test_a_sentence_is_there_before_the_last_words_are_sent(server: CohereServer) -> None:
    sent = Event()
    server.say(ChatReply(f"{TEXT} {TEXT}", [("new key", ["1"]), ("32", ["2"])], pause=0.02, ended=sent.set))
    steps = generator(server).generate(REQUEST)
    assert [next(steps), next(steps)] == [Span("Make a "), Span("new key", ("1",))]
    assert not sent.is_set()
    assert "".join(span.text for span in steps if isinstance(span, Span)) == f"{TEXT} {TEXT}".removeprefix(
        "Make a new key"
    )
    assert sent.wait(SOON)
    assert not server.left.is_set()


def test_writing(server: CohereServer) -> None:
    made = generator(server)
    server.say(ChatReply("How is a key rotated?", thinking="s3cret", finish="MAX_TOKENS"))
    messages = ChatMessage("user", "a"), ChatMessage("assistant", "b"), ChatMessage("user", "c")
    text = made.write(ModelRequest("Rephrase.", messages, 9, Deadline(5)))
    assert text == "How is a key rotated?"
    (request,) = server.history
    assert request.headers["accept"] == "application/json"
    assert [m["role"] for m in request.body["messages"]] == ["system", "user", "assistant", "user"]
    assert (request.body["max_tokens"], request.body["stream"]) == (9, False)
    server.play(Fault(400, said="Thinking is not supported"))
    assert (
        made.write(ModelRequest("Rephrase.", (ChatMessage("user", "a"),), 9, Deadline(5))) == "In short: as you asked."
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda reply: {**reply, "finish_reason": "ERROR"}, BROKE_OFF),
        (lambda reply: {**reply, "finish_reason": ["COMPLETE"]}, BROKE_OFF),
        (lambda reply: {**reply, "message": None}, NOTHING),
        (lambda reply: {**reply, "message": {"content": None}}, NOTHING),
        (lambda reply: {**reply, "message": {"content": "text"}}, NOTHING),
        (lambda reply: {**reply, "message": {"content": [7, {"type": "text", "text": 7}]}}, NOTHING),
        (lambda reply: {**reply, "message": {"content": [{"type": "thinking", "thinking": "x"}]}}, NOTHING),
        (lambda reply: [reply], NO_REPLY),
        (lambda reply: b"<html>", NO_REPLY),
    ],
)
def test_a_text_that_is_none_is_one_sentence(server: CohereServer, change: Any, sentence: str) -> None:
    server.play(Fault(change=change))
    with pytest.raises(ProviderError) as caught:
        written(generator(server))
    assert str(caught.value) == sentence


def test_writing_ends_with_its_time_and_its_reader(server: CohereServer) -> None:
    server.play(Fault(hang=LONG), Fault(hang=LONG))
    with pytest.raises(ProviderError, match="did not answer in time"):
        written(generator(server), Deadline(0.2))
    deadline = Deadline()
    with leaving(server, deadline.abort), pytest.raises(ProviderError):
        written(generator(server), deadline)


def test_a_model_may_reject_the_switch_of_thinking_and_the_schema(server: CohereServer) -> None:
    server.play(Fault(400, said="thinking is not supported by this model"), Fault(400, said="no such type"))
    server.say(*[ChatReply('{"a": 1}')] * 2)
    model, schema = generator(server), ResponseSchema("answer", {"type": "object"})
    asked = ModelRequest("As JSON.", (ChatMessage("user", "What?"),), 60, Deadline(SOON))
    assert [model.write_data(asked, schema), model.write(asked)] == ['{"a": 1}'] * 2
    sent = [("thinking" in one.body, "response_format" in one.body) for one in server.history]
    assert sent == [(True, True), (False, True), (False, False), (False, False)]
