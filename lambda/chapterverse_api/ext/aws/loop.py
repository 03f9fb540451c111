"""Handles one invocation after another: streams HTTP responses, and answers other events at once."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, NoReturn, cast

from mangum.types import LambdaContext
from starlette.types import ASGIApp, Scope

from chapterverse.text.json_text import parse_json
from chapterverse_api import log, rejections
from chapterverse_api.ext.aws.events import LambdaHandler, is_request
from chapterverse_api.ext.aws.runtime_api import Invocation, RuntimeApi, RuntimeFault
from chapterverse_api.ext.aws.streamed_response import SPARE_SECONDS, StreamedResponse
from chapterverse_api.rejections import Rejection

#: Seconds between attempts to get an invocation. After the last one the process ends, and Lambda starts another.
_RETRY_PAUSES = (0.1, 0.3, 0.9)
#: Seconds to wait for an application to stop.
_STOP_SECONDS = 0.5
#: The variable of the environment in which libraries for tracing look for the trace.
_TRACE_VARIABLE = "_X_AMZN_TRACE_ID"


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
        [task], timeout=max(invocation.seconds_left - SPARE_SECONDS, invocation.seconds_left / 2)
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
