"""Charges of a model behind OpenAI's interface; no request is sent twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event

import pytest

from api.draft.drafts import check_leaving, cited, drafted, make_request
from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import Usage
from chapterverse_api.ext.openai.generator import OpenAIGenerator
from fakes.bags import tokens
from fakes.billing import assert_sent_once
from fakes.loopback import LONG, SOON, Fault, sending
from fakes.openai_server import KEY, OpenAIServer, chunk, event


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def generator(server: OpenAIServer, model: str = "gpt-4.1-mini") -> OpenAIGenerator:
    return OpenAIGenerator.from_settings(Settings(openai_url=server.url, openai_api_key=KEY), model)


def test_a_server_that_sends_its_answer_whole_is_understood(server: OpenAIServer) -> None:
    server.streams = False
    made = generator(server)
    asked = make_request(usage=Usage())
    assert drafted(made, asked) == (Span("It has 32 characters.", ("1",)),)
    # It is taken as it is: to ask for it once more would be to pay for it once more.
    assert [r.body["stream"] for r in server.history] == [True]
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == (1, tokens("It has 32 characters [1]."))
    server.finish = "length"
    assert drafted(made)[-1].cut
    for broken in (b"{", b"[" * 100_000, b"<html>Log in</html>"):
        server.play(sending(broken))
        with pytest.raises(ProviderError, match="answered with something that is no reply"):
            drafted(made)
    server.play(Fault(change=lambda reply: {"error": {"message": "s3cret"}}))
    with pytest.raises(ProviderError, match="broke off"):
        drafted(made)
    server.play(Fault(change=lambda reply: b" " * (17 * 1024 * 1024)))
    with pytest.raises(ProviderError, match="more than a reply may hold"):
        drafted(made)
    server.play(Fault(hang=LONG))
    check_leaving(made, server)


def test_thoughts_that_nobody_sees_are_counted(server: OpenAIServer) -> None:
    server.thoughts, asked = 2000, make_request(usage=Usage())
    drafted(generator(server), asked)
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == (1, 2000 + tokens("It has 32 characters [1]."))


@pytest.mark.parametrize(
    ("said", "read", "written"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}, 7, 5),
        # Without its thoughts, which only the total knows.
        ({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 112}, 7, 105),
        ({"prompt_tokens": 7, "completion_tokens": 5}, 7, 5),
        ({"prompt_tokens": -7, "completion_tokens": 5}, 0, 0),
        ({"prompt_tokens": 7, "completion_tokens": True}, 0, 0),
        ({"prompt_tokens": 7, "completion_tokens": 10**12}, 0, 0),
        ({"prompt_tokens": "7", "completion_tokens": 5}, 0, 0),
        ("much", 0, 0),
    ],
)
def test_only_what_can_be_is_counted(server: OpenAIServer, said: object, read: int, written: int) -> None:
    asked = make_request(usage=Usage())
    server.play(
        Fault(change=lambda _: iter([chunk({"content": "A [1]"}, "stop"), event({"choices": [], "usage": said})]))
    )
    assert drafted(generator(server), asked)
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == (read, written)


@pytest.mark.parametrize("behind", [[b"data: {s3cret\n\n"], [b"data: 5\n\n"], [b"event: error\ndata: {}\n\n"]])
def test_what_breaks_off_behind_the_answer_takes_nothing_from_it(server: OpenAIServer, behind: list[bytes]) -> None:
    server.play(Fault(change=lambda _: iter([chunk({"content": "A [1]"}), chunk({}, "stop"), *behind])))
    assert cited(drafted(generator(server))) == [("A", ("1",))]


def test_a_server_that_falls_silent_behind_the_answer_is_not_waited_for(server: OpenAIServer) -> None:
    gate = Event()

    def frames(_: object) -> Iterator[bytes]:
        yield chunk({"content": "A [1]"}, "stop")
        gate.wait(20)

    server.play(Fault(change=frames))
    start = time.monotonic()
    assert drafted(generator(server), make_request(10))
    assert time.monotonic() - start < SOON
    gate.set()


def test_a_server_that_counts_no_streams_is_asked_without(server: OpenAIServer) -> None:
    made = generator(server, "old-model")
    assert drafted(made)
    assert drafted(made)
    assert ["stream_options" in r.body for r in server.history] == [True, False, False]


@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_what_may_be_billed_is_not_tried_again(server: OpenAIServer, status: int) -> None:
    assert_sent_once(server, status, lambda: drafted(generator(server)))
