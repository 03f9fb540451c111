"""The Cohere generator when its service fails, stalls, or sends something else than an answer."""

from __future__ import annotations

import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from api.draft.cohere.damage import damaged_bytes, damaged_events
from api.draft.cohere.drafts import (
    BROKE_OFF,
    NO_REPLY,
    NOTHING,
    PASSAGES,
    REQUEST,
    TEXT,
    WITHHELD,
    drafted,
    generator,
    written,
)
from api.draft.drafts import passage
from chapterverse.errors import ProviderError
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span
from fakes.billing import assert_sent_once
from fakes.cohere_chat import NO_VALID_RESPONSE, ChatReply, Events
from fakes.cohere_server import TRIAL_LIMITS, CohereServer
from fakes.loopback import LONG, SOON, Fault, failing, leaving, rate_limited


def changed(change: Any, text: str = TEXT) -> ChatReply:
    return ChatReply(text, change=change)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (changed(lambda events: events[:-1]), BROKE_OFF),
        (changed(lambda events: []), BROKE_OFF),
        (ChatReply(TEXT, finish="ERROR"), BROKE_OFF),
        (ChatReply(TEXT, finish="TIMEOUT"), BROKE_OFF),
        (ChatReply("", finish="TOOL_CALL"), NOTHING),
        (ChatReply(TEXT, finish="COMPLETE", error="s3cret upstream"), BROKE_OFF),
        (changed(lambda events: [{**events[0], "delta": {"error": "s3cret"}}]), BROKE_OFF),
        (ChatReply(""), NOTHING),
        (ChatReply(" \n "), NOTHING),
        (changed(lambda events: [e for e in events if not e["type"].startswith("content")]), NOTHING),
        (changed(lambda events: [{**events[2], "delta": {"message": {"content": {"text": 7}}}}]), NO_REPLY),
        (ChatReply(["x" * 1000] * 61), "The model answered with more than it was asked for."),
    ],
)  # fmt: skip
def test_an_answer_that_fails_on_its_way_is_one_sentence(server: CohereServer, reply: ChatReply, sentence: str) -> None:
    server.say(reply)
    with pytest.raises(ProviderError) as caught:
        drafted(generator(server))
    assert str(caught.value) == sentence
    assert len(server.history) == 1
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_an_end_mark_without_a_reason_ends_an_answer(server: CohereServer) -> None:
    server.say(changed(lambda events: [{**e, "delta": {}} if e["type"] == "message-end" else e for e in events]))
    assert "".join(span.text for span in drafted(generator(server))) == TEXT


@pytest.mark.parametrize("data", [b"{", b'{"start": ' + b"9" * 5000 + b"}"])
def test_a_damaged_event_ends_the_answer(server: CohereServer, data: bytes) -> None:
    server.play(Fault(change=lambda pieces: iter([b"data: " + data + b"\n\n", *pieces])))
    with pytest.raises(ProviderError) as caught:
        drafted(generator(server))
    assert str(caught.value) == BROKE_OFF
    assert caught.value.retryable


@pytest.mark.parametrize("data", [b"[1]", b"7", b"null", b" ", b"[" * 100_000, b"hello"])
def test_an_event_without_an_object_is_passed_over(server: CohereServer, data: bytes) -> None:
    server.play(Fault(change=lambda pieces: iter([b"data: " + data + b"\n\n", *pieces])))
    with_it, without = (drafted(generator(server)) for _ in range(2))
    assert with_it == without


def test_events_that_say_nothing_to_us_are_passed_over(server: CohereServer) -> None:
    odd: Events = [{"type": "debug", "prompt": "x"}, {"type": "tool-plan-delta"}, {"type": ["x"]}, {"type": {}}, {}]
    server.say(ChatReply(TEXT, change=lambda events: [*odd, *events, {"type": "citation-end"}, *odd]))
    server.play(
        Fault(change=lambda pieces: iter([b"data: [DONE]\n\ndata:\n\n: ping\n\n", *pieces, b"data: [DONE]\n\n"]))
    )
    assert drafted(generator(server)) == (Span(TEXT),)


@pytest.mark.parametrize("fault", [Fault(cut=True), Fault(change=lambda pieces: b"", close=True)])
def test_a_stream_that_is_cut_is_no_answer(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match="broke off") as caught:
        drafted(generator(server))
    assert caught.value.retryable
    assert len(server.history) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(400), "refused the request as malformed"),
        (Fault(401), "refused the key: check COHERE_API_KEY"),
        (Fault(402), "has a budget, a quota or a balance that is used up: check the account's billing"),
        (Fault(403), "refused the key: check COHERE_API_KEY"),
        (Fault(404), "does not know this model: check its name and CHAPTERVERSE_COHERE_URL"),
        (Fault(422, code=NO_VALID_RESPONSE), WITHHELD),
        (Fault(422), "refused the request as malformed"),
        (Fault(498), WITHHELD),
        (Fault(499), "failed with status 499"),
    ],
)
@pytest.mark.parametrize("writing", [False, True], ids=["generate", "write"])
def test_a_refusal_is_final_and_says_what_to_do(server: CohereServer, fault: Fault, reason: str, writing: bool) -> None:
    server.play(replace(fault, said=f"s3cret about {REQUEST.question}"))
    ask = written if writing else drafted
    with pytest.raises(ProviderError) as caught:
        ask(generator(server))
    assert str(caught.value) == f"Cohere {reason}."
    assert not caught.value.retryable
    assert len(server.history) == 1
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_what_may_be_billed_is_not_tried_again(server: CohereServer, status: int) -> None:
    assert_sent_once(server, status, lambda: drafted(generator(server)))


@pytest.mark.parametrize("status", [429, 503])
def test_it_is_tried_twice(server: CohereServer, status: int) -> None:
    server.play(failing(status))
    assert drafted(generator(server))
    server.play(*[failing(status)] * 20)
    with pytest.raises(ProviderError) as caught:
        drafted(generator(server))
    assert caught.value.retryable
    assert len(server.history) == 4


def test_a_long_wait_is_not_waited(server: CohereServer) -> None:
    server.play(rate_limited(30))
    with pytest.raises(ProviderError, match="Cohere has a rate limit that was reached: try again later") as caught:
        drafted(generator(server))
    assert caught.value.retryable
    assert len(server.history) == 1


def test_a_trial_key_that_is_used_up_is_explained() -> None:
    with CohereServer(limits={**TRIAL_LIMITS, "x-trial-endpoint-call-limit": "20"}) as server:
        made = generator(server)
        drafted(made)
        server.play(*[rate_limited()] * 2)
        with pytest.raises(ProviderError, match="trial key has used up its 20 calls of this minute"):
            drafted(made)


def test_a_model_that_must_not_be_told_not_to_think_is_asked_again(server: CohereServer) -> None:
    made = generator(server)
    server.play(Fault(400, said="thinking is not supported by this model"))
    assert drafted(made) == drafted(made) == (Span(PASSAGES[0].text, ("1",)),)
    assert ["thinking" in request.body for request in server.history] == [True, False, False]
    # What was refused for something else is asked no third time, and teaches nothing.
    another = generator(server)
    server.play(*[Fault(400, said="thinking is a deep word")] * 2)
    with pytest.raises(ProviderError, match="refused the request as malformed"):
        drafted(another)
    drafted(another)
    assert ["thinking" in request.body for request in server.history[3:]] == [True, False, True]


def test_a_wrong_key_is_named_but_not_shown(server: CohereServer) -> None:
    made = generator(server, cohere_api_key="s3cret-value")
    with pytest.raises(ProviderError, match="check COHERE_API_KEY") as caught:
        drafted(made)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)) + repr(made)


def test_no_server_is_one_sentence() -> None:
    with CohereServer() as gone:
        made = generator(gone)
    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 could not be reached or broke off\.$") as caught:
        drafted(made)
    assert caught.value.retryable


@pytest.mark.parametrize("fault", [Fault(hang=LONG), Fault(drip=0.2)], ids=["silent", "dripping"])
def test_a_slow_model_is_left_when_the_turn_is_over(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    started = time.monotonic()
    with pytest.raises(ProviderError, match="did not answer in time"):
        drafted(generator(server), replace(REQUEST, deadline=Deadline(0.3)))
    assert time.monotonic() - started < SOON
    assert server.left.wait(SOON)


@pytest.mark.parametrize("pause", [0.0, LONG], ids=["before the first byte", "between two words"])
def test_a_reader_who_leaves_ends_a_silent_stream(server: CohereServer, pause: float) -> None:
    server.say(ChatReply(TEXT, pause=pause))
    server.play(Fault(hang=0.0 if pause else LONG))
    deadline = Deadline()
    with leaving(server, deadline.abort), pytest.raises(ProviderError):
        drafted(generator(server), replace(REQUEST, deadline=deadline))
    assert server.left.wait(SOON)


def test_who_closes_the_draft_stops_the_model(server: CohereServer) -> None:
    server.say(ChatReply(f"{TEXT} {TEXT}", pause=0.01))
    steps = generator(server).generate(REQUEST)
    next(steps)
    steps.close()
    assert server.left.wait(SOON)


def test_a_connection_serves_many_answers(server: CohereServer) -> None:
    made = generator(server)
    for _ in range(5):
        drafted(made)
        written(made)
    assert server.connections == 1


def test_threads_share_a_generator(server: CohereServer) -> None:
    made = generator(server)

    def ask(i: int) -> str:
        asked = replace(REQUEST, passages=(passage("1", "P", text=f"Passage number {i}."),), deadline=Deadline(10))
        return "".join(span.text for span in drafted(made, asked))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(100))) == [f"Passage number {i}." for i in range(100)]


@pytest.mark.slow
def test_a_stream_damaged_anyhow_is_a_draft_or_one_error(server: CohereServer) -> None:
    made, failures = generator(server), []
    for seed in range(1000):
        cites = [("Make a new key", ["1"]), ("old one", ["1", "2"]), ("32", ["77"])]
        server.say(
            ChatReply(
                TEXT, cites, thinking="s3cret thought" if seed % 2 else "", inline=seed % 3 == 0,
                change=damaged_events(seed),
            )
        )  # fmt: skip
        server.play(Fault(change=damaged_bytes(seed), cut=seed % 50 == 0))
        try:
            draft = drafted(made)
        except ProviderError as error:
            failures.append(str(error))
        else:
            assert "s3cret" not in "".join(span.text for span in draft)
            assert all(type(i) is str for span in draft for i in span.citations)
    # Both ends are met often enough for this to mean something.
    assert 200 < len(failures) < 800
    assert "s3cret" not in "".join(failures)
