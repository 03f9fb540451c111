"""A question over sockets: a reader, uvicorn, the service over a real index, and a model behind HTTP."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from api import quill
from api.scripted import Client, serving
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.commands import ServiceSession
from chapterverse_api.contract import ChatQuery, ChatResponse
from chapterverse_api.deadline import Deadline
from chapterverse_api.service import Service
from fakes.cohere_server import CohereServer
from fakes.loopback import Fault, failing
from fakes.openai_server import KEY, OpenAIServer
from fakes.sse import events

STREAM = {"accept": "text/event-stream"}
QUESTION = "How do I clear the cache?"
TRUE = "`quill cache clean` removes every entry"


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


def opened(index: Path, provider: OpenAIServer) -> Service:
    return ServiceSession.open(
        Settings(store=f"edge:{index}", generator="openai:gpt-4.1-mini", openai_url=provider.url, openai_api_key=KEY)
    )


def test_the_first_words_reach_the_reader_before_the_model_has_sent_its_last_byte(
    index: Path, provider: OpenAIServer
) -> None:
    gate = threading.Event()
    provider.scripts.append(
        [
            f"{TRUE} [1].",
            " `quill cache",
            lambda: gate.wait(10),
            " prune` removes those that no page uses any more [1].",
        ]
    )
    with (
        serving(create_app(opened(index, provider))) as address,
        httpx.stream("POST", f"{address}/v1/chat", json={"query": QUESTION}, headers=STREAM, timeout=60) as response,
    ):
        coming = events(response.iter_lines())
        assert next(coming)[0] == "meta"
        name, delta = next(coming)
        assert (name, delta["text"][:6]) == ("delta", "`quill")
        assert not gate.is_set()
        gate.set()
        (*_, (name, final)) = coming
    assert name == "final"
    answer = ChatResponse.model_validate_json(json.dumps(final))
    assert (answer.status, answer.degraded_reason) == ("answered", None)
    assert answer.response.startswith(f"{TRUE}.")
    assert answer.segments[0].citations == ["1"]


def test_a_reader_who_leaves_ends_the_models_work(index: Path, provider: OpenAIServer) -> None:
    gate = threading.Event()
    provider.scripts.append([f"{TRUE} [1]. And", lambda: gate.wait(30), " so."])
    try:
        with serving(create_app(opened(index, provider))) as address:
            with httpx.stream(
                "POST", f"{address}/v1/chat", json={"query": QUESTION}, headers=STREAM, timeout=60
            ) as response:
                coming = events(response.iter_lines())
                assert [next(coming)[0] for _ in range(2)] == ["meta", "delta"]
                assert not provider.left.is_set()
            assert provider.left.wait(5)
    finally:
        gate.set()


def test_a_reader_who_leaves_while_the_model_is_silent_ends_its_work_too(index: Path, provider: OpenAIServer) -> None:
    provider.play(Fault(hang=30))
    with serving(create_app(opened(index, provider))) as address:
        with httpx.stream(
            "POST", f"{address}/v1/chat", json={"query": QUESTION}, headers=STREAM, timeout=60
        ) as response:
            coming = events(response.iter_lines())
            assert next(coming)[0] == "meta"
            asked(provider)
        assert provider.left.wait(5)


def test_who_leaves_before_a_whole_answer_ends_the_models_work_too(index: Path, provider: OpenAIServer) -> None:
    provider.play(Fault(hang=30))
    with serving(create_app(opened(index, provider))) as address:
        with contextlib.closing(HTTPConnection(address.removeprefix("http://"))) as connection:
            body = json.dumps({"query": QUESTION})
            connection.request("POST", "/v1/chat", body, {"content-type": "application/json"})
            asked(provider)
        assert provider.left.wait(5)


def asked(provider: OpenAIServer) -> None:
    """Wait until the model was asked."""
    deadline = time.monotonic() + 10
    while not provider.history:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(
    "fault", [failing(500), Fault(401, said="Incorrect API key"), Fault(cut=True), Fault(change=lambda _: b"<html>")]
)
def test_a_model_that_fails_leaves_quotes_under_a_200(index: Path, provider: OpenAIServer, fault: Fault) -> None:
    provider.play(*[fault] * 4)
    client = Client(create_app(opened(index, provider)))
    answer = client.post("/v1/chat", {"query": QUESTION})
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert "since the model failed" in answer.json()["degraded_reason"]
    assert f"- {TRUE}." in answer.json()["response"]
    assert answer.json()["sources_cited"] == [f"{quill.BASE}cache/#clearing-the-cache"]


def test_a_model_that_is_slower_than_a_turn_leaves_quotes(index: Path, provider: OpenAIServer) -> None:
    provider.play(Fault(hang=30))
    *_, answer = opened(index, provider).chat(ChatQuery(query=QUESTION), deadline=Deadline(0.5))
    assert isinstance(answer, ChatResponse)
    assert answer.status == "degraded"


def test_buffered_the_same_events_come_at_once(index: Path, provider: OpenAIServer) -> None:
    client = Client(create_app(opened(index, provider)))
    provider.scripts.extend([[f"{TRUE} [1]."], [f"{TRUE} [1]."]])
    streamed = list(events(iter(client.post("/v1/chat", {"query": QUESTION}, headers=STREAM).text.split("\n"))))
    assert [name for name, _ in streamed][0 :: len(streamed) - 1] == ["meta", "final"]
    assert "".join(data["text"] for name, data in streamed if name == "delta") == f"{TRUE}."
    whole = client.post("/v1/chat", {"query": QUESTION}).json()
    changing = ("turn_id", "timestamp", "execution_time", "signature")
    assert {k: v for k, v in streamed[-1][1].items() if k not in changing} == {
        k: v for k, v in whole.items() if k not in changing
    }


def test_cohere_end_to_end(index: Path) -> None:
    with CohereServer() as server:
        settings = Settings(store=f"edge:{index}", generator="cohere", cohere_url=server.url, cohere_api_key="test-key")
        answer = quill.ask(ServiceSession.open(settings), QUESTION)
    (request,) = server.history
    assert request.path == "/v2/chat"
    assert answer.degraded_reason is None
    assert quill.BASE not in json.dumps(request.body["documents"])
