"""A service that answers from a queue and records its requests, and a client without a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from typing import Any

import httpx
from starlette.types import ASGIApp

from chapterverse.local_server import bind, socket_origin
from chapterverse.settings import Settings
from chapterverse_api.answer.resources import Resources
from chapterverse_api.contract import (
    AnswerEvent,
    ChatQuery,
    ChatResponse,
    Delta,
    Events,
    Feedback,
    Meta,
    RetrievalRequest,
    ServiceStatus,
)
from chapterverse_api.deadline import Deadline
from chapterverse_api.ext.server.connections import Bounds
from chapterverse_api.ext.server.server import server
from chapterverse_api.retrieval_contract import RetrievalResponse, RetrievalStats
from chapterverse_api.service import Service

META = Meta(turn_id="t1", mode="rag", sources=[])
ANSWER = ChatResponse(
    response="Set `site_url`.",
    source_chunks=[],
    segments=[],
    mode="rag",
    status="answered",
    grounding_confidence=0.9,
    retrieval_used=True,
    sources_cited=[],
    timestamp="2026-01-02T03:04:05Z",
    execution_time=0.01,
    turn_id="t1",
)
WHOLE: tuple[AnswerEvent, ...] = (META, Delta(text="Set "), Delta(text="`site_url`."), ANSWER)
FOUND = RetrievalResponse(
    query_id="q1",
    created_at="2026-01-02T03:04:05.000Z",
    processed_at="2026-01-02T03:04:05.010Z",
    state="completed",
    model=None,
    attempts=1,
    retrieved_chunks=[],
    execution_time=0.01,
    retrieval_stats=RetrievalStats(total_candidates=0, search_threshold=0, collection_name="docs"),
    ranking_algorithm="none",
)


class Scripted(Service):
    """Plays one script for each question: events to yield and errors to raise. With no script left, a whole answer."""

    # Unlike a service, which is frozen, it keeps notes.
    __setattr__ = object.__setattr__

    def __init__(self, *scripts: Iterable[AnswerEvent | Exception], settings: Settings | None = None) -> None:
        settings = settings or Settings()
        super().__init__(replace(Resources.open(Settings(records=settings.records)), settings=settings))
        self.queue = deque(scripts)
        self.asked: list[ChatQuery | RetrievalRequest] = []
        self.rated: list[Feedback] = []
        self.closed = 0

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        self.asked.append(query)
        try:
            yield from _played(self._next(WHOLE))
        finally:
            self.closed += 1

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        self.asked.append(request)
        for step in self._next(()):
            assert isinstance(step, Exception)
            raise step
        return FOUND

    def rate(self, rating: Feedback) -> None:
        self.rated.append(rating)
        for step in self._next(()):
            assert isinstance(step, Exception)
            raise step

    def status(self) -> ServiceStatus:
        for step in self._next(()):
            assert isinstance(step, Exception)
            raise step
        return ServiceStatus(status="ok", indexes=[], models={"embedder": "none"}, degraded=[])

    def _next(self, default: Iterable[AnswerEvent | Exception]) -> Iterable[AnswerEvent | Exception]:
        return self.queue.popleft() if self.queue else default


def _played(script: Iterable[AnswerEvent | Exception]) -> Iterator[AnswerEvent]:
    for step in script:
        if isinstance(step, Exception):
            raise step
        yield step


class Client:
    """Asks an application in this process. An exception that leaves the application is raised here."""

    def __init__(self, app: ASGIApp, origin: str = "http://localhost") -> None:
        self._app = app
        self._base = origin

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.many([(method, path, options)])[0]

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, json: Any, **options: Any) -> httpx.Response:
        return self.request("POST", path, json=json, **options)

    def post_raw(self, path: str, body: bytes) -> httpx.Response:
        return self.request("POST", path, content=body, headers={"content-type": "application/json"})

    def many(self, requests: Iterable[tuple[str, str, dict[str, Any]]]) -> list[httpx.Response]:
        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url=self._base) as client:
                return [await client.request(method, path, **options) for method, path, options in requests]

        return asyncio.run(run())


@contextmanager
def serving(app: ASGIApp, bounds: Bounds | None = None) -> Iterator[str]:
    """Run a real server on a free port of this machine and yield its address."""
    with bind("127.0.0.1", 0) as sock:
        running = server(app, bounds=bounds)
        thread = Thread(target=running.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            while not running.started:
                assert thread.is_alive(), "the server did not start"
                thread.join(0.005)
            yield socket_origin(sock)
        finally:
            running.should_exit = True
            thread.join()


def error_of(response: httpx.Response) -> dict[str, str]:
    """Return the error that a response holds, after checking that it holds nothing else."""
    document = response.json()
    assert set(document) == {"error"}
    assert {"code", "message"} <= set(document["error"]) <= {"code", "message", "field"}
    message = document["error"]["message"]
    assert message.endswith(".")
    assert "\n" not in message
    error: dict[str, str] = document["error"]
    return error
