"""Handles one invocation after another: streams HTTP responses as they are made, and answers other events at once."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterable
from typing import Any, NoReturn, cast

from mangum.types import LambdaContext
from starlette.types import ASGIApp, Message, Scope

from chapterverse.text.json_text import parse_json
from chapterverse_api import log, rejections
from chapterverse_api.ext.aws.events import LambdaHandler, is_request
from chapterverse_api.ext.aws.runtime_api import Invocation, RuntimeApi, RuntimeFault
from chapterverse_api.rejections import Rejection

#: Seconds between attempts to get an invocation. After the last one the process ends, and Lambda starts another.
_RETRY_PAUSES = (0.1, 0.3, 0.9)
#: Seconds to wait for an application to stop.
_STOP_SECONDS = 0.5
#: The variable of the environment in which libraries for tracing look for the trace.
_TRACE_VARIABLE = "_X_AMZN_TRACE_ID"
#: Seconds before the function's time-out at which an answer ends, so that the reader gets an error message.
_SPARE_SECONDS = 1.0
#: Lambda's separator between head and body.
_HEAD_END = b"\0" * 8
_TOO_LATE = Rejection(503, "too_late", "The answer took longer than this service may take.", retryable=True)
#: Beginnings of a message that is the last one of its stream.
_FINAL_EVENT_PREFIXES = (b"event: final", b"event: error", b'data: {"error"')
#: The end of such a message at an address of OpenAI's API.
_FINAL_EVENT_SUFFIX = b"data: [DONE]\n\n"


class Loop:
    """Serves one handler on one event loop, one invocation at a time."""

    def __init__(self, api: RuntimeApi, handler: LambdaHandler) -> None:
        self._api = api
        self._handler = handler
        self._asyncio = asyncio.new_event_loop()
        # Mangum uses the thread's event loop.
        asyncio.set_event_loop(self._asyncio)

    def run(self) -> NoReturn:
        """Serve until the process ends.

        Raises:
            RuntimeFault: no invocation can be read.
        """
        while True:
            invocation = self._next()
            _set_trace(invocation.trace_id)
            try:
                self.serve(invocation)
            except RuntimeFault as fault:
                # For example 410: the invocation timed out, but the next one may work.
                log.event("error", code="response_lost", message=str(fault))

    def serve(self, invocation: Invocation) -> None:
        """Answer one invocation.

        Raises:
            RuntimeFault: the answer was rejected.
        """
        context = cast(LambdaContext, invocation)
        try:
            event = parse_json(invocation.body)
        except ValueError:
            self._api.fail("Runtime.UnmarshalError", "The event is not JSON.", invocation)
            return
        if not _can_stream(event):
            self._api.answer(invocation, self._handler(event, context))
            return
        app: ASGIApp = self._handler.mangum.app
        scope: Scope = {"type": "http"}
        body = b""
        try:
            request = self._handler.read_request(event, context)
            scope, body = request.scope, request.body
        except Rejection as rejection:
            app = rejection
        response = StreamedResponse(self._api, invocation, body, scope.get("path", ""))
        self._asyncio.run_until_complete(_stream(app, scope, response, invocation))

    def _next(self) -> Invocation:
        for pause in _RETRY_PAUSES:
            try:
                return self._api.next()
            except RuntimeFault as fault:
                log.event("error", code="runtime_api", message=f"{fault} It is asked again.")
                time.sleep(pause)
        return self._api.next()


def _can_stream(event: Any) -> bool:
    """Return whether the sender of an event can stream the answer.

    Function URLs and HTTP APIs send the same format (2.0), but only Function URLs stream.
    """
    if not is_request(event) or event.get("version") != "2.0":
        return False
    context = event["requestContext"]
    domain = context.get("domainName") if isinstance(context, dict) else None
    return ".execute-api." not in str(domain)


async def _stream(app: ASGIApp, scope: Scope, response: StreamedResponse, invocation: Invocation) -> None:
    """Run the application until it ends, or until just before the function's time-out."""
    task = asyncio.ensure_future(_run_app(app, scope, response))
    # With a time-out below two seconds the application gets half of it.
    _, running = await asyncio.wait(
        [task], timeout=max(invocation.seconds_left - _SPARE_SECONDS, invocation.seconds_left / 2)
    )
    if running:
        await response.abort()
        # Threads can't be stopped, so they may continue during the next invocation, without a reader.
        await asyncio.wait([task], timeout=_STOP_SECONDS)


async def _run_app(app: ASGIApp, scope: Scope, response: StreamedResponse) -> None:
    try:
        await app(scope, response.receive, response.send)
        if not response.is_over:
            raise RuntimeError("The application ended without the end of its response.")
    except Exception as error:
        if response.is_open:
            response.fail(error)
        else:
            await rejections.report(error)(scope, response.receive, response.send)


def _set_trace(trace_id: str | None) -> None:
    os.environ.pop(_TRACE_VARIABLE, None)
    if trace_id:
        os.environ[_TRACE_VARIABLE] = trace_id


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
