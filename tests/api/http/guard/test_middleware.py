from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.scripted import WHOLE, Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import Events
from chapterverse_api.http.guard import WORKER_THREADS, AnyOrigin, Guard, is_api

QUESTION = "where is my secret page"


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/chat", "/mcp", "/widget/panel.js", "/openapi.json"])
def test_the_service_owns(path: str) -> None:
    assert is_api(path)


@pytest.mark.parametrize("path", ["/", "", "/v10/", "/guide/v1/", "/widgets/", "//v1/chat", "/index.html"])
def test_the_documentation_owns(path: str) -> None:
    assert not is_api(path)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/health"), ("GET", "/openapi.json"), ("GET", "/v1/nope"), ("POST", "/v1/chat"), ("PUT", "/v1/chat")],
)
def test_whatever_the_service_says_is_neither_sniffed_nor_stored(method: str, path: str) -> None:
    response = Client(create_app(Scripted())).request(method, path)
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"] == "no-store"


def test_a_refused_origin_gets_them_too() -> None:
    response = Client(create_app(Scripted())).get("/v1/health", headers={"origin": "https://evil.com"})
    assert (response.status_code, response.headers["x-content-type-options"]) == (403, "nosniff")


def test_a_crash_is_a_plain_500_with_cors_and_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    service = Scripted([ValueError(QUESTION)], settings=Settings(allowed_origins="https://docs.example.com"))
    client = Client(create_app(service))
    response = client.post("/v1/chat", {"query": QUESTION}, headers={"origin": "https://docs.example.com"})
    assert (response.status_code, error_of(response)["code"]) == (500, "internal")
    assert response.headers["access-control-allow-origin"] == "https://docs.example.com"
    assert response.headers["cache-control"] == "no-store"
    (record,) = [r for r in caplog.records if r.name == "chapterverse"]
    assert record.levelno == logging.ERROR
    line = json.loads(record.message)
    assert (line["event"], line["type"], line["where"].partition(":")[0]) == ("error", "ValueError", "scripted.py")
    assert QUESTION not in response.text + caplog.text


async def _receive() -> Message:
    return {"type": "http.disconnect"}


def _run(app: ASGIApp) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(app, AnyOrigin())(scope, _receive, send))
    return sent


def test_a_client_that_left_is_nobodys_error(caplog: pytest.LogCaptureFixture) -> None:
    async def left(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    assert _run(left) == []
    assert caplog.records == []


def test_a_response_that_broke_off_is_not_made_to_look_whole() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the very error of the application, with no text
        _run(broken)


class Meeting(Scripted):
    """Answers nobody before all are there."""

    def __init__(self, guests: int) -> None:
        super().__init__(settings=Settings(rates="off"))
        self.barrier = threading.Barrier(guests, timeout=20)

    def chat(self, *arguments: Any, **options: Any) -> Events:
        self.barrier.wait()
        yield from WHOLE


def test_readers_who_wait_for_a_model_do_not_wait_for_each_other() -> None:
    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=create_app(Meeting(WORKER_THREADS)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            questions = (client.post("/v1/chat", json={"query": "a"}, timeout=60) for _ in range(WORKER_THREADS))
            return await asyncio.gather(*questions)

    assert {response.status_code for response in asyncio.run(ask())} == {200}
