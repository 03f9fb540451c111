"""Models behind OpenAI's `POST /v1/chat/completions`, against a fake on loopback that checks OpenAI's limits."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from api.draft.drafts import check_leaving, cited, damaged, drafted, make_request, outcome
from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.openai.service import OpenAIService
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span, Writer
from chapterverse_api.draft.requests import ChatMessage, ModelRequest
from chapterverse_api.ext.models import prompts
from chapterverse_api.ext.openai.generator import OpenAIGenerator
from fakes.instead import instead
from fakes.loopback import LONG, SOON, Fault, failing, rate_limited, sending
from fakes.openai_server import KEY, OpenAIServer, Script, chunk, event

BROKEN = "The model service broke off in the middle of its answer: try again later."
NOTHING = "The model answered with nothing: ask in other words."
WITHHELD = "The model service withheld the answer by its content filter: ask in other words."
SPENT = "has a budget, a quota or a balance that is used up: check the account's billing"
TOO_LONG = "finds the prompt longer than its model's context: give the model at least 8,000 tokens"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def generator(server: OpenAIServer, model: str = "gpt-4.1-mini", key: str = KEY) -> OpenAIGenerator:
    return OpenAIGenerator.from_settings(Settings(openai_url=server.url, openai_api_key=key), model)


def test_an_answer_comes_without_its_marks_and_with_what_they_say(server: OpenAIServer) -> None:
    server.scripts.append(["Make a new key [", "1].", " It has 32 characters[2", "][1]."])
    made = generator(server)
    assert isinstance(made, Writer)
    assert made.name == "openai:gpt-4.1-mini"
    assert cited(drafted(made)) == [("Make a new key. ", ("1",)), ("It has 32 characters.", ("2", "1"))]


@pytest.mark.parametrize("words", range(1, 6))
def test_an_answer_that_comes_at_once_loses_no_word(server: OpenAIServer, words: int) -> None:
    server.scripts.append([f"{word} " for word in "Make a new key now".split()[:words]])
    server.play(Fault(change=lambda frames: iter([b"".join(frames)])))
    text = "".join(span.text for span in drafted(generator(server)))
    assert text.split() == "Make a new key now".split()[:words]


def test_the_request(server: OpenAIServer) -> None:
    drafted(
        generator(server), make_request(history=(ChatMessage("user", "Hello?"), ChatMessage("assistant", "Hello.")))
    )
    (request,) = server.history
    assert request.headers["authorization"] == f"Bearer {KEY}"
    body = request.body
    messages = body.pop("messages")
    assert body == {
        "model": "gpt-4.1-mini",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.1,
        "max_tokens": 600,
    }
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    nonce = messages[3]["content"].partition("<cv-sources-")[2].partition(">")[0]
    assert len(nonce) == 16
    assert messages[0]["content"] == prompts.instructions(make_request(), nonce)
    assert messages[3]["content"] == prompts.conversation(make_request(), nonce)[0].content
    assert b"example.com" not in request.raw
    assert KEY.encode() not in request.raw
    drafted(generator(server))
    assert nonce.encode() not in server.history[1].raw


def test_a_local_server_needs_no_key() -> None:
    with OpenAIServer(key="") as server:
        assert drafted(generator(server, "local-model", key="")) == (Span("It has 32 characters.", ("1",)),)
        assert "authorization" not in server.history[0].headers


def test_the_first_words_are_there_before_the_last_bytes_are_sent(server: OpenAIServer) -> None:
    gate = Event()
    server.scripts.append(["Make a ", "new key [1].", lambda: gate.wait(10), " More [2]."])
    steps = generator(server).generate(make_request())
    assert next(steps) == Span("Make a ")
    assert next(steps) == Span("new key [1].")
    gate.set()
    assert list(steps) == [Span(" More [2].")]


def test_a_model_that_refuses_the_old_name_of_the_limit_is_asked_by_the_new_one(server: OpenAIServer) -> None:
    made = generator(server, "gpt-5-mini")
    drafted(made)
    drafted(made)
    common = {"messages", "model", "stream", "stream_options"}
    asked = [{k: v for k, v in r.body.items() if k not in common} for r in server.history]
    assert asked == [
        {"max_tokens": 600, "temperature": 0.1},
        {"max_completion_tokens": 600, "temperature": 0.1},
        # With room to think.
        {"max_completion_tokens": 2600},
        {"max_completion_tokens": 2600},
    ]


def test_openai_itself_is_asked_by_the_new_name() -> None:
    made = OpenAIGenerator.from_settings(Settings(openai_api_key=KEY), "gpt-5-mini")
    assert made._dialect.fields(5, streams=False) == {"max_completion_tokens": 5, "temperature": 0.1}


def test_a_server_that_refuses_the_new_name_is_asked_by_the_old_one(server: OpenAIServer) -> None:
    service = instead(OpenAIService(server.url, {"Authorization": f"Bearer {KEY}"}), is_openai=True)
    assert drafted(OpenAIGenerator("strict-model", service))
    assert [("max_tokens" in r.body) for r in server.history] == [False, True]


def test_a_request_that_stays_refused_is_refused(server: OpenAIServer) -> None:
    server.play(*[Fault(400, said="max_tokens and temperature are too large")] * 9)
    with pytest.raises(ProviderError, match=r"^The model service refused the request as malformed\.$"):
        drafted(generator(server))
    assert len(server.history) == 3
    server.faults.clear()
    # What failed is not remembered.
    assert drafted(generator(server))


def test_an_answer_that_was_cut_says_so(server: OpenAIServer) -> None:
    server.finish = "length"
    server.scripts.append(["Make a new key [1]. Then rem", "ove [1"])
    assert drafted(generator(server)) == (Span("Make a new key. ", ("1",)), Span("Then remove", (), cut=True))


def test_thoughts_are_never_shown(server: OpenAIServer) -> None:
    thoughts = [{"reasoning_content": "Hm."}, {"reasoning": "Hm.", "content": None}, {"content": "<thi"}]
    thoughts += [{"content": "nk>Hm. [1]</th"}, {"content": "ink>\n\nA key [1]"}, {"content": ". <think>"}]
    thoughts += [{"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "!"}]}]
    server.play(Fault(change=lambda frames: iter([*map(chunk, thoughts), chunk({}, "stop")])))
    assert cited(drafted(generator(server))) == [("A key. ", ("1",)), ("<think>!", ())]


@pytest.mark.parametrize(
    ("frames", "sentence"),
    [
        ([chunk({"content": "A"})], BROKEN),
        ([], BROKEN),
        ([chunk({"content": "A"}), b"event: error\ndata: {}\n\n"], BROKEN),
        ([chunk({"content": "A"}), event({"error": {"message": "s3cret"}}), chunk({}, "stop")], BROKEN),
        ([chunk({"content": "A"}), event({"error": {"message": "s3cret"}, "choices": []}), chunk({}, "stop")], BROKEN),
        ([chunk({"content": "A"}), chunk({}, "error")], BROKEN),
        ([chunk({"content": 5}), chunk({}, "stop")], BROKEN),
        ([chunk("s3cret"), chunk({}, "stop")], BROKEN),
        ([event([]), chunk({}, "stop")], NOTHING),
        ([event({"choices": [[]]}), chunk({}, "stop")], BROKEN),
        ([b"data: {s3cret\n\n", chunk({}, "stop")], BROKEN),
        ([b"data: " + b"[" * 100_000 + b"\n\n", chunk({}, "stop")], NOTHING),
        (
            [chunk({"content": "A"}), chunk({}, "content_filter")],
            WITHHELD,
        ),
        ([chunk({"content": " \n[1] "}), chunk({}, "stop")], NOTHING),
        ([chunk({"content": None, "refusal": "No."}), b"data: [DONE]\n\n"], WITHHELD),
        (
            [chunk({"content": "<think>on and on"}), chunk({}, "length")],
            "The model spent its whole answer on thoughts: name a model that reasons less, or switch that off.",
        ),
    ],
)
def test_a_stream_that_failed_is_one_sentence(server: OpenAIServer, frames: list[bytes], sentence: str) -> None:
    server.play(Fault(change=lambda _: iter(frames)))
    with pytest.raises(ProviderError) as caught:
        drafted(generator(server))
    assert str(caught.value) == sentence
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_stream_may_end_by_its_reason_or_by_its_mark(server: OpenAIServer) -> None:
    ends: tuple[list[bytes], ...] = ([chunk({}, "stop")], [b"data: [DONE]\n\n"], [chunk({"content": ""}, "eos_token")])
    for end in ends:
        server.play(sending(iter([b": ping\n\n", chunk({"content": "A [2]"}), *end])))
        assert cited(drafted(generator(server))) == [("A", ("2",))]


def test_chunks_of_other_servers_are_understood(server: OpenAIServer) -> None:
    usage, other = (
        event({"usage": {"total_tokens": 1}}),
        {"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"},
    )
    frames = [usage, b"event: completion\n" + chunk({"content": "A key"}), event({"choices": [other]})]
    frames += [event({"choices": [other, {"index": 0, "delta": {"content": " [1]."}}]}), usage, chunk({}, "stop")]
    server.play(Fault(change=lambda _: iter(frames)))
    assert cited(drafted(generator(server))) == [("A key.", ("1",))]


def test_half_a_character_never_passes(server: OpenAIServer) -> None:
    halves = [chunk({"content": c}) for c in ("A \ud83d", "\ude00 b \ud83d", "c\ude00", "\ud83d")]
    server.play(Fault(change=lambda _: iter([*halves, chunk({}, "stop")])))
    assert "".join(s.text for s in drafted(generator(server))) == "A \U0001f600 b \ufffdc\ufffd\ufffd"


@pytest.mark.parametrize(
    ("fault", "sentence", "retryable"),
    [
        (Fault(401, said="s3cret"), "refused the key: check OPENAI_API_KEY", False),
        (Fault(403, said="s3cret"), "refused the key: check OPENAI_API_KEY", False),
        (
            Fault(404, said="s3cret"),
            "does not know this model: check its name and CHAPTERVERSE_OPENAI_URL",
            False,
        ),
        (Fault(400, said="s3cret"), "refused the request as malformed", False),
        (Fault(429, code="insufficient_quota", said="s3cret"), SPENT, False),
        (Fault(418, said="s3cret"), "failed with status 418", False),
        (rate_limited(30), "has a rate limit that was reached: try again later", True),
        (failing(503), "failed with status 503", True),
    ],
)
def test_a_refusal_says_what_to_do(server: OpenAIServer, fault: Fault, sentence: str, retryable: bool) -> None:
    server.play(fault, fault)
    with pytest.raises(ProviderError) as caught:
        drafted(generator(server))
    assert str(caught.value) == f"The model service {sentence}."
    assert caught.value.retryable is retryable
    shown = "".join(traceback.format_exception(caught.value)) + repr(generator(server))
    assert not any(secret in shown for secret in ("s3cret", KEY))


def test_a_passing_failure_is_tried_again_before_the_first_word(server: OpenAIServer) -> None:
    server.play(failing(503))
    assert drafted(generator(server))
    assert len(server.history) == 2


def test_a_reader_who_leaves_ends_the_wait(server: OpenAIServer) -> None:
    gate = Event()
    scripts: list[tuple[Fault, Script]] = [(Fault(hang=LONG), []), (Fault(), ["A key", lambda: gate.wait(20)])]
    for fault, script in scripts:
        server.left.clear()
        server.play(fault)
        server.scripts.append(script)
        check_leaving(generator(server), server)
        assert server.left.wait(SOON)
    gate.set()


def test_a_draft_that_is_closed_ends_the_model_s_work(server: OpenAIServer) -> None:
    gate = Event()
    server.scripts.append(["A key", lambda: gate.wait(20)])
    with closing(generator(server).generate(make_request())) as steps:
        assert next(steps) == Span("A key")
    assert server.left.wait(SOON)
    gate.set()


def test_a_silent_model_is_left_when_the_time_is_up(server: OpenAIServer) -> None:
    gate = Event()
    server.scripts.append(["A key", lambda: gate.wait(20)])
    start = time.monotonic()
    with pytest.raises(ProviderError, match="did not answer in time"):
        drafted(generator(server), make_request(0.2))
    assert time.monotonic() - start < SOON
    with pytest.raises(ProviderError):
        drafted(generator(server), make_request(0))
    gate.set()


@pytest.mark.slow
def test_a_thousand_damaged_streams_are_drafts_or_failures(server: OpenAIServer) -> None:
    made = generator(server)
    spare = (
        chunk({"content": "\ud800 [9] `"}),
        event({"choices": None}),
        b"data: [DONE]\n\n",
        b"\r\r",
        b"data: 1e999\n\n",
    )
    server.play(*(damaged(seed, *spare) for seed in range(1000)))
    outcomes = []
    for _ in range(1000):
        server.scripts.append(["Make ", "a key [1].\n", "```\na[1]", "\n``` ", "\U0001f600 [2]", "[1] end."])
        outcomes.append(outcome(made))
    failed = sum(isinstance(found, ProviderError) for found in outcomes)
    assert 100 < failed < 900
    assert not server.faults
    for found in outcomes:
        if not isinstance(found, ProviderError):
            "".join(span.text for span in found).encode()


def test_it_writes(server: OpenAIServer) -> None:
    def written(tokens: int = 60) -> str:
        return generator(server).write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), tokens, Deadline(5)))

    server.scripts.append(["<think>Hm</think> How do I ", "rotate a key? [1]\n"])
    assert written() == "How do I rotate a key? [1]"
    body: dict[str, Any] = server.history[0].body
    assert body["messages"] == [{"role": "system", "content": "Rephrase."}, {"role": "user", "content": "that?"}]
    assert (body["max_tokens"], body["stream"]) == (60, False)
    server.play(Fault(401))
    with pytest.raises(ProviderError, match="refused the key"):
        written()
    server.play(Fault(change=lambda reply: {**reply, "choices": "s3cret"}))
    with pytest.raises(ProviderError, match="broke off"):
        written()
    server.play(Fault(hang=LONG))
    start = time.monotonic()
    with pytest.raises(ProviderError, match="did not answer in time"):
        generator(server).write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, Deadline(0.2)))
    assert time.monotonic() - start < SOON


@pytest.mark.parametrize(
    ("settings", "model", "sentence"),
    [
        (
            {},
            "gpt-4.1-mini",
            (
                "The generator openai needs a key: set OPENAI_API_KEY in the environment, or CHAPTERVERSE_OPENAI_URL "
                "to a server that needs none."
            ),
        ),
        ({"openai_api_key": "k\ney"}, "m", "OPENAI_API_KEY holds characters that no key has: copy it again."),
        ({"openai_url": "localhost"}, "m", "'localhost' is no address of a service: use https://HOST."),
    ],
)
def test_what_is_missing_is_one_sentence(settings: dict[str, str], model: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIGenerator.from_settings(Settings().override(**settings), model)
    assert str(caught.value) == sentence


def test_the_fake_refuses_what_the_real_one_refuses(server: OpenAIServer) -> None:
    rest = generator(server)._rest

    def status(**changes: Any) -> int:
        body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": "a"}], **changes}
        return rest.post("/v1/chat/completions", body).status

    assert status() == status(max_tokens=1) == 200
    wrong: list[dict[str, Any]] = [
        {"messages": []}, {"messages": [{"role": "owner", "content": "a"}]}, {"documents": []}, {"max_tokens": 0},
        {"temperature": 3}, {"model": "gpt-5-mini", "max_tokens": 5},
    ]  # fmt: skip
    assert {status(**changes) for changes in wrong} == {400}
    assert status(model="gpt-0") == 404
    assert json.loads(server.history[0].raw)
