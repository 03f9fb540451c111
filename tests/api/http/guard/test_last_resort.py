from __future__ import annotations

import asyncio
import json
import logging

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from api.scripted import Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.http.guard.last_resort import LastResort

QUESTION = "where is my secret page"


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


def _run(app: LastResort) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app({"type": "http", "path": "/"}, _receive, send))
    return sent


def test_a_client_that_left_is_nobodys_error(caplog: pytest.LogCaptureFixture) -> None:
    async def left(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    assert _run(LastResort(left)) == []
    assert caplog.records == []


def test_a_response_that_broke_off_is_not_made_to_look_whole() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the very error of the application, with no text
        _run(LastResort(broken))
