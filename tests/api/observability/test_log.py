from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from api import quill
from api.scripted import META, WHOLE, Client, Scripted, serving
from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.answer.event import RecordsFault
from chapterverse_api.app import create_app
from chapterverse_api.commands import ServiceSession
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import failing
from fakes.recorded_log import recorded_log

CANARY = "cAnArYwOrD"
QUESTION = {"query": "How do I clear the cache?"}
STREAM = {"accept": "text/event-stream"}


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with recorded_log() as stream:
        yield stream


def test_an_event_is_one_json_line(stream: io.StringIO) -> None:
    log.event("results_ranked", turn_id="t1", thread_id="th", execution_time=0.25, candidates=7)
    line = json.loads(stream.getvalue())
    assert datetime.fromisoformat(line.pop("time")).utcoffset() == timedelta(0)
    assert line == {
        "request_id": None,
        "event": "results_ranked",
        "turn_id": "t1",
        "thread_id": "th",
        "execution_time": 0.25,
        "candidates": 7,
    }


def test_a_value_can_not_forge_a_second_line(stream: io.StringIO) -> None:
    log.event("error", turn_id=None, message='x\n{"event": "response_sent"}\ud800\u2028')
    assert len(stream.getvalue().splitlines()) == 1


def test_writing_to_a_stream_twice_does_not_double_the_lines(stream: io.StringIO) -> None:
    log.write_to(stream)
    log.event("response_sent", turn_id="t1")
    assert len(stream.getvalue().splitlines()) == 1


def test_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="chapterverse")
    log.event("query_received", turn_id="t1")
    log.event("error", turn_id="t1", code="internal")
    assert [r.levelno for r in caplog.records] == [logging.INFO, logging.ERROR]


def test_a_silenced_logger_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="chapterverse")
    log.event("query_received", turn_id="t1")
    assert caplog.records == []


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("index"))


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


# Ids of requests


@pytest.mark.parametrize("headers", [{}, STREAM])
def test_every_line_of_a_request_has_the_id_that_the_response_has(
    stream: io.StringIO, index: Settings, headers: dict[str, str]
) -> None:
    with CohereServer() as cohere:
        settings = index.override(generator="cohere", cohere_url=cohere.url, cohere_api_key=KEY)
        response = Client(create_app(ServiceSession.open(settings))).post("/v1/chat", QUESTION, headers=headers)
    assert response.status_code == 200
    written = lines(stream)
    assert {"query_received", "results_ranked", "response_generated", "response_sent"} <= {w["event"] for w in written}
    assert {w["request_id"] for w in written} == {response.headers["x-request-id"]}
    times = [datetime.fromisoformat(w["time"]) for w in written]
    assert times == sorted(times)


def test_requests_at_the_same_time_keep_their_ids_apart(stream: io.StringIO, index: Settings) -> None:
    """Over sockets, since there the steps of several answers take turns in the same worker threads."""
    ids: list[str] = []

    def ask(address: str) -> None:
        for _ in range(4):
            response = httpx.post(f"{address}/v1/chat", json=QUESTION, headers=STREAM, timeout=60)
            turn = json.loads(response.text.partition("data: ")[2].partition("\n")[0])["turn_id"]
            ids.append(f"{turn} {response.headers['x-request-id']}")

    with serving(create_app(quill.service(index))) as address:
        threads = [threading.Thread(target=ask, args=(address,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(ids)) == 24
    assert {f"{w['turn_id']} {w['request_id']}" for w in lines(stream)} == set(ids)


@pytest.mark.parametrize("forged", ["1", "a" * 200, "8a4e7fd8ddd042efa4df88bc6b2b4381"])
def test_a_client_does_not_choose_its_id(stream: io.StringIO, forged: str) -> None:
    client = Client(create_app(Scripted([ValueError()])))
    names = ("x-request-id", "x-amzn-requestid", "x-amzn-trace-id", "x-correlation-id", "traceparent")
    response = client.post("/v1/chat", QUESTION, headers=dict.fromkeys(names, forged))
    (line,) = lines(stream)
    assert line["request_id"] == response.headers["x-request-id"] != forged


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/v1/health", {}, 200),
        ("GET", "/", {}, 404),
        ("PUT", "/v1/chat", {}, 405),
        ("GET", "/v1/health", {"headers": {"origin": "https://evil.example"}}, 403),
        ("POST", "/v1/chat", {"json": QUESTION}, 500),
    ],
)
def test_every_response_has_an_id_of_its_own(method: str, path: str, options: dict[str, Any], status: int) -> None:
    app = create_app(Scripted([ValueError()], [ValueError()]))
    first, second = (Client(app).request(method, path, **options) for _ in range(2))
    assert first.status_code == status
    assert len({first.headers["x-request-id"], second.headers["x-request-id"]}) == 2


# Parts that fail


def failed_parts(stream: io.StringIO) -> list[str]:
    return [line["part"] for line in lines(stream) if line["event"] == "error"]


@pytest.mark.parametrize("question", [QUESTION["query"], "What is the weather in Paris?"])
def test_an_embedder_that_fails_is_an_error_and_no_success(stream: io.StringIO, tmp_path: Path, question: str) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    embedder.down = True
    response = Client(create_app(service)).post("/v1/chat", {"query": question, "thread_id": "th-1"})
    written = lines(stream)
    (error,) = (line for line in written if line["event"] == "error")
    assert (error["code"], error["part"]) == ("provider_unavailable", "embedder")
    assert (error["type"], error["message"]) == ("ProviderError", "The embedder can't be reached.")
    assert (error["turn_id"], error["thread_id"]) == (response.json()["turn_id"], "th-1")
    assert error["request_id"] == response.headers["x-request-id"]
    assert error["execution_time"] > 0
    assert "embedding_generated" not in {line["event"] for line in written}
    assert {"retrieval_performed", "results_ranked", "response_sent"} < {line["event"] for line in written}


def test_a_reranker_that_fails_is_an_error_and_ranked_nothing(stream: io.StringIO, tmp_path: Path) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    service = quill.changed(
        service,
        reranker=quill.Reranker({}, ProviderError("The reranker can't be reached.")),
    )
    client = Client(create_app(service))
    assert client.post("/v1/chat", QUESTION).json()["status"] == "answered"
    (before,) = (line for line in lines(stream) if line["event"] == "results_ranked")
    assert before["algorithm"].endswith("scripted:1")
    assert failed_parts(stream) == []
    assert client.post("/v1/chat", QUESTION).json()["status"] == "degraded"
    assert failed_parts(stream) == ["reranker"]
    after = [line for line in lines(stream) if line["event"] == "results_ranked"][1]
    assert "scripted" not in after["algorithm"]
    assert [line["event"] for line in lines(stream)].count("embedding_generated") == 2


def test_a_part_that_is_left_alone_is_an_error_too(stream: io.StringIO, tmp_path: Path) -> None:
    embedder = quill.Terms()
    client = Client(create_app(quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)))
    embedder.down = True
    for _ in range(4):
        client.post("/v1/chat", QUESTION)
    assert failed_parts(stream) == ["embedder"] * 4
    assert len(embedder.asked) == 3


def test_a_generator_that_fails_is_named(stream: io.StringIO, index: Settings) -> None:
    with CohereServer() as cohere:
        cohere.play(*[failing(500)] * 9)
        service = ServiceSession.open(index.override(generator="cohere", cohere_url=cohere.url, cohere_api_key=KEY))
        response = Client(create_app(service)).post("/v1/chat", {**QUESTION, "thread_id": "th-1"})
    (error,) = (line for line in lines(stream) if line["event"] == "error")
    assert (error["part"], error["turn_id"], error["thread_id"]) == ("generator", response.json()["turn_id"], "th-1")
    assert error["execution_time"] > 0


def test_parts_of_a_search_without_an_answer_fail_as_loudly(stream: io.StringIO, tmp_path: Path) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    service = quill.changed(
        service,
        reranker=quill.Reranker(ProviderError("The reranker can't be reached.")),
    )
    embedder.down = True
    response = Client(create_app(service)).post("/v1/retrieve", QUESTION)
    assert response.status_code == 200
    assert failed_parts(stream) == ["embedder", "reranker"]
    assert {line["request_id"] for line in lines(stream)} == {response.headers["x-request-id"]}


# Nothing that a reader writes

#: Where a reader's words may stand: each makes options of a request.
FIELDS: dict[str, dict[str, Any]] = {
    "query": {"json": {"query": CANARY}},
    "selected_text": {"json": {"selected_text": CANARY}},
    "history": {"json": {**QUESTION, "conversation_history": [{"role": "user", "content": CANARY}]}},
    "timestamp": {
        "json": {**QUESTION, "conversation_history": [{"role": "user", "content": "a", "timestamp": CANARY}]}
    },
    "user_context": {"json": {**QUESTION, "user_context": CANARY}},
    "page_url": {"json": {**QUESTION, "page_url": f"https://{CANARY}.example/"}},
    "language": {"json": {**QUESTION, "language": CANARY}},
    "version": {"json": {**QUESTION, "version": CANARY}},
    "filters": {"json": {**QUESTION, "filters": {"tags": [CANARY], "url": CANARY}}},
    "a filter's name": {"json": {**QUESTION, "filters": {CANARY: CANARY}}},
    "an unknown field": {"json": {**QUESTION, CANARY: CANARY}},
    "headers": {"json": QUESTION, "headers": {"user-agent": CANARY, "referer": f"https://a/{CANARY}", CANARY: CANARY}},
    "the address": {"json": QUESTION, "params": {CANARY: CANARY}},
    "no JSON": {"content": f'{{"query": "{CANARY}'.encode(), "headers": {"content-type": "application/json"}},
    "no type": {"content": CANARY.encode()},
}


def failures(options: dict[str, Any], index: Settings, cohere: CohereServer) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield an application for each way in which a request can fail, and the request that fails so."""
    quoting = ValueError(f"what is {CANARY}?")
    foreign = {**options, "headers": {**options.get("headers", {}), "origin": f"https://{CANARY}.example"}}
    streamed = {**options, "headers": {**options.get("headers", {}), **STREAM}}
    yield Scripted([quoting]), options
    yield Scripted([META, quoting]), streamed
    yield Scripted([*WHOLE, quoting]), streamed
    yield Scripted([RecordsFault("The database can't be reached.")]), options
    yield Scripted([META]), streamed
    yield Scripted(), foreign
    yield Scripted(), {**options, "content": b" " * 140_000 + CANARY.encode(), "json": None}
    yield ServiceSession.open(index.override(store=f"{index.store}/nothing")), options
    cohere.play(*[failing(500)] * 9)
    yield ServiceSession.open(index.override(generator="cohere", cohere_url=cohere.url, cohere_api_key=KEY)), options


@pytest.mark.parametrize("field", FIELDS)
def test_no_word_of_a_reader_is_logged_or_said_back_however_a_request_fails(
    field: str, index: Settings, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    addresses = ("/v1/chat", "/v1/retrieve", "/v1/feedback", f"/v1/{CANARY}")
    responses: list[httpx.Response] = []
    with CohereServer() as cohere:
        for service, options in failures(FIELDS[field], index, cohere):
            responses += Client(create_app(service)).many(("POST", address, options) for address in addresses)
    refused = [response for response in responses if response.status_code != 200]
    assert len(refused) > len(responses) / 2
    # The client of the tests logs what it asks.
    logged = [r.getMessage() for r in caplog.records if not r.name.startswith("httpx")]
    assert len(logged) > 5
    for sink in (*logged, *capfd.readouterr(), *(f"{response.headers} {response.text}" for response in refused)):
        assert CANARY.lower() not in sink.lower()
