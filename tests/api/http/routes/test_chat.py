from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection
from typing import Any

import httpx
import pytest

from api.scripted import ANSWER, META, WHOLE, Client, Scripted, error_of, serving
from chapterverse.errors import IndexMissing, InputError, ProviderError
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery, Delta, Events, dump
from chapterverse_api.deadline import Deadline

STREAM = {"accept": "text/event-stream"}


def _events(text: str) -> list[tuple[str, dict[str, Any]]]:
    assert text.endswith("\n\n")
    frames = [frame.split("\n") for frame in text.removesuffix("\n\n").split("\n\n")]
    assert all(len(f) == 2 and f[0].startswith("event: ") and f[1].startswith("data: ") for f in frames)
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in frames]


def _streamed(service: Scripted) -> httpx.Response:
    return Client(create_app(service)).post("/v1/chat", {"query": "a"}, headers=STREAM)


def test_the_whole_answer_as_json() -> None:
    service = Scripted()
    response = Client(create_app(service)).post("/v1/chat", {"query": "How?", "top_k": 3})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == dump(ANSWER)
    assert service.asked == [ChatQuery(query="How?", top_k=3)]
    assert service.closed == 1


def test_the_answer_as_a_stream() -> None:
    response = _streamed(Scripted())
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"
    assert _events(response.text) == [
        ("meta", dump(META)),
        ("delta", dump(Delta(text="Set "))),
        ("delta", dump(Delta(text="`site_url`."))),
        ("final", dump(ANSWER)),
    ]


def test_line_breaks_in_a_text_do_not_break_the_stream() -> None:
    text = "a\r\n\n\u2028event: final\n\ndata: {}\0"
    assert _events(_streamed(Scripted([META, Delta(text=text), ANSWER])).text)[1] == ("delta", dump(Delta(text=text)))


@pytest.mark.parametrize("headers", [{}, STREAM])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (IndexMissing("x"), 503, "index_missing"),
        (ProviderError("x"), 503, "provider_unavailable"),
        (InputError("filters takes tags."), 422, "out_of_contract"),
        (KeyError("x"), 500, "internal"),
    ],
)
def test_an_error_before_the_first_event_is_an_http_error(
    error: Exception, status: int, code: str, headers: dict[str, str]
) -> None:
    response = Client(create_app(Scripted([error]))).post("/v1/chat", {"query": "a"}, headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (ProviderError("key sk-1 refused", retryable=True), "provider_unavailable", True),
        (ProviderError("key sk-1 refused"), "provider_unavailable", False),
        (ZeroDivisionError("sk-1"), "internal", False),
    ],
)
def test_an_error_on_the_way_is_the_last_event(
    error: Exception, code: str, retryable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    response = _streamed(Scripted([META, Delta(text="Set "), error]))
    *before, (name, last) = _events(response.text)
    assert [n for n, _ in before] == ["meta", "delta"]
    assert (name, set(last)) == ("error", {"code", "message", "retryable"})
    assert (last["code"], last["retryable"]) == (code, retryable)
    assert "sk-1" not in response.text
    assert json.loads(caplog.records[0].message)["turn_id"] == "t1"


def test_an_answer_that_stops_without_its_final_part_is_an_error() -> None:
    assert [name for name, _ in _events(_streamed(Scripted([META])).text)] == ["meta", "error"]
    response = Client(create_app(Scripted([META]))).post("/v1/chat", {"query": "a"})
    assert (response.status_code, error_of(response)["code"]) == (500, "internal")


def test_what_fails_after_the_final_event_is_for_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    response = _streamed(Scripted([*WHOLE, ValueError()]))
    assert [name for name, _ in _events(response.text)] == ["meta", "delta", "delta", "final"]
    assert json.loads(caplog.records[0].message)["event"] == "error"


class Stepwise(Scripted):
    """Waits before each part until the test has seen the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Semaphore(1)

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        try:
            for event in WHOLE:
                assert self.go.acquire(timeout=10)
                yield event
        finally:
            self.closed += 1


def test_each_event_leaves_before_the_next_is_made() -> None:
    service = Stepwise()
    names = []
    with (
        serving(create_app(service)) as address,
        httpx.stream("POST", f"{address}/v1/chat", json={"query": "a"}, headers=STREAM, timeout=60) as response,
    ):
        for line in response.iter_lines():
            if line.startswith("event: "):
                names.append(line.removeprefix("event: "))
                service.go.release()
    assert names == ["meta", "delta", "delta", "final"]


def test_a_client_that_leaves_ends_the_answer() -> None:
    endless = Endless()
    with serving(create_app(endless)) as address:
        with httpx.stream("POST", f"{address}/v1/chat", json={"query": "a"}, headers=STREAM, timeout=60) as response:
            next(response.iter_lines())
        assert endless.ended.wait(5)
        parts = endless.parts
        time.sleep(0.05)
        assert endless.parts == parts


class Endless(Scripted):
    """Never stops by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()
        self.parts = 0

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        try:
            yield META
            while True:
                self.parts += 1
                yield Delta(text="and ")
                time.sleep(0.002)
        finally:
            self.ended.set()


def test_a_client_that_leaves_ends_a_wait_for_the_models_next_word() -> None:
    silent = Silent()
    with serving(create_app(silent)) as address:
        with httpx.stream("POST", f"{address}/v1/chat", json={"query": "a"}, headers=STREAM, timeout=60) as response:
            next(response.iter_lines())
        assert silent.ended.wait(5)
    assert silent.cut


class Silent(Scripted):
    """Waits for a model that never says a word, as long as a turn may take."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()
        self.cut = False

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        assert deadline is not None
        word = threading.Event()
        try:
            yield META
            with deadline.closing(word.set):
                word.wait(deadline.seconds_left)
            self.cut = deadline.is_aborted
            yield Delta(text="never heard")
        finally:
            self.ended.set()
