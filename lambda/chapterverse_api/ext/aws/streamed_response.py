"""Passes the application's response on to the Runtime API as it is made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from starlette.types import Message

from chapterverse_api import log, rejections
from chapterverse_api.ext.aws.runtime_api import Invocation, RuntimeApi, RuntimeFault
from chapterverse_api.rejections import Rejection

#: Seconds before the function's time-out at which an answer ends, so that the reader gets an error message.
SPARE_SECONDS = 1.0

#: Lambda's separator between head and body.
_HEAD_END = b"\0" * 8
_TOO_LATE = Rejection(503, "too_late", "The answer took longer than this service may take.", retryable=True)
#: Beginnings of a message that is the last one of its stream.
_FINAL_EVENT_PREFIXES = (b"event: final", b"event: error", b'data: {"error"')
#: The end of such a message at an address of OpenAI's API.
_FINAL_EVENT_SUFFIX = b"data: [DONE]\n\n"


class StreamedResponse:
    """ASGI's `receive` and `send` for one request, both on the event loop's thread.

    The response starts with its first body byte; until then a failure can become a clean error response.

    Attributes:
        is_open: whether the head was sent.
        is_over: whether the response ended or was lost.
    """

    def __init__(self, api: RuntimeApi, invocation: Invocation, body: bytes, path: str = "") -> None:
        self._api = api
        self._path = path
        self._invocation = invocation
        self._request: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._head = b""
        self._is_events = False
        self._has_last_event = False
        self.is_open = False
        self.is_over = False
        self._disconnected = asyncio.Event()

    async def receive(self) -> Message:
        if self._request:
            request, self._request = self._request, None
            return request
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message["headers"]]
            self._head = _head(message["status"], headers)
            self._is_events = dict(headers).get("content-type", "").startswith("text/event-stream")
        elif message["type"] == "http.response.body":
            self._write(message.get("body", b""))
            if not message.get("more_body", False):
                self._close()

    def fail(self, error: Exception) -> None:
        """End a response that the application aborted."""
        self._close(type(error).__name__, rejections.from_error(error).message)

    async def abort(self) -> None:
        """End the response because of the function's time-out, and tell the application to stop."""
        if not self.is_over:
            log.event(
                "error",
                code=_TOO_LATE.code,
                message="The function's time-out came before the end of the answer: give the function 30 seconds.",
            )
            await self._send_too_late()
        self._disconnected.set()

    async def _send_too_late(self) -> None:
        if not self.is_open:
            await _TOO_LATE({"type": "http", "path": self._path}, self.receive, self.send)
            return
        if self._is_events and not self._has_last_event:
            self._write(_TOO_LATE.event(self._path).encode())
        # Half a response of another kind must not look complete.
        self._close("" if self._has_last_event else _TOO_LATE.code, _TOO_LATE.message)

    def _write(self, data: bytes) -> None:
        if self.is_over:
            return
        # A message always contains whole frames.
        self._has_last_event = self._has_last_event or (
            self._is_events and (data.startswith(_FINAL_EVENT_PREFIXES) or data.endswith(_FINAL_EVENT_SUFFIX))
        )
        try:
            if not self.is_open:
                self._api.open_stream(self._invocation)
                self.is_open = True
                self._api.send(self._head + _HEAD_END, self._invocation.seconds_left)
            # An empty chunk would end the body.
            if data:
                self._api.send(data, self._invocation.seconds_left)
        except RuntimeFault as fault:
            self._lose(fault)

    def _close(self, kind: str = "", message: str = "") -> None:
        if self.is_over:
            return
        self.is_over = True
        try:
            self._api.close_stream(kind, message)
        except RuntimeFault as fault:
            self._lose(fault)
        self._disconnected.set()

    def _lose(self, fault: RuntimeFault) -> None:
        log.event("error", code="response_lost", message=str(fault))
        self.is_over = True
        self._disconnected.set()


def _head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the JSON before the body: repeated headers joined, cookies separate."""
    joined: dict[str, str] = {}
    cookies = []
    for name, value in headers:
        if name == "set-cookie":
            cookies.append(value)
        # The body is chunked, and Lambda computes its length.
        elif name != "content-length":
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return json.dumps({"statusCode": status, "headers": joined, "cookies": cookies}).encode()
