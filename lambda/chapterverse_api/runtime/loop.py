"""Handles one invocation after another: streams HTTP requests, answers other events whole."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any, NoReturn, cast

from mangum.types import LambdaContext
from starlette.types import ASGIApp, Scope

from chapterverse_api import rejections
from chapterverse_api.observability import log
from chapterverse_api.rejections import Rejection
from chapterverse_api.runtime.api import Invocation, RuntimeApi, RuntimeFault
from chapterverse_api.runtime.events import LambdaHandler, is_request
from chapterverse_api.runtime.response import SPARE_SECONDS, StreamedResponse

#: Seconds between the tries to get an invocation; after the last the process gives up, and Lambda starts another.
_PAUSES = (0.1, 0.3, 0.9)
#: Seconds for which an application that was told to stop is waited for.
_STOPPING_SECONDS = 0.5
_TRACE = "_X_AMZN_TRACE_ID"


class Loop:
    """Serves one handler, one invocation at a time, on one event loop."""

    def __init__(self, api: RuntimeApi, handler: LambdaHandler) -> None:
        self._api = api
        self._handler = handler
        self._asyncio = asyncio.new_event_loop()
        # Mangum answers on the loop of its thread.
        asyncio.set_event_loop(self._asyncio)

    def run(self) -> NoReturn:
        """Serve for as long as the process lives.

        Raises:
            RuntimeFault: there are no invocations to be had.
        """
        while True:
            invocation = self._next()
            _trace(invocation.trace_id)
            try:
                self.serve(invocation)
            except RuntimeFault as fault:
                # 410, for one: the invocation is over, by its time-out perhaps, and the next one is not.
                log.event("error", turn_id=None, code="response_lost", message=str(fault))

    def serve(self, invocation: Invocation) -> None:
        """Answer one invocation.

        Raises:
            RuntimeFault: the answer was not taken.
        """
        context = cast(LambdaContext, invocation)
        try:
            event = json.loads(invocation.body)
        except (ValueError, RecursionError):
            self._api.fail(invocation, "Runtime.UnmarshalError", "The event is not JSON.")
            return
        if not streams(event):
            self._api.answer(invocation, self._handler(event, context))
            return
        app: ASGIApp = self._handler.mangum.app
        scope: Scope = {"type": "http"}
        body = b""
        try:
            request = self._handler.request(event, context)
            scope, body = request.scope, request.body
        except Rejection as refusal:
            app = refusal.response()
        self._asyncio.run_until_complete(_stream(app, scope, StreamedResponse(self._api, invocation, body), invocation))

    def _next(self) -> Invocation:
        for pause in _PAUSES:
            try:
                return self._api.next()
            except RuntimeFault as fault:
                log.event("error", turn_id=None, code="runtime_api", message=f"{fault} It is asked again.")
                time.sleep(pause)
        return self._api.next()


def streams(event: Any) -> bool:
    """Return whether an event comes from where an answer may be streamed to.

    Function URLs and HTTP APIs send the same format (2.0), and of the two only Function URLs stream.
    """
    if not is_request(event) or event.get("version") != "2.0":
        return False
    context = event["requestContext"]
    domain = context.get("domainName") if isinstance(context, dict) else None
    return ".execute-api." not in str(domain)


async def _stream(app: ASGIApp, scope: Scope, response: StreamedResponse, invocation: Invocation) -> None:
    """Run the application until it is done, or until just before the function's time is up."""
    task = asyncio.ensure_future(_run(app, scope, response))
    # A function whose time-out is shorter than two seconds has half of it.
    _, running = await asyncio.wait([task], timeout=max(invocation.left - SPARE_SECONDS, invocation.left / 2))
    if running:
        await response.cut()
        # What still runs then goes on beside the next invocation, unheard: a thread can't be stopped.
        await asyncio.wait([task], timeout=_STOPPING_SECONDS)


async def _run(app: ASGIApp, scope: Scope, response: StreamedResponse) -> None:
    try:
        await app(scope, response.receive, response.send)
        if not response.is_over:
            raise RuntimeError("The application ended without the end of its response.")
    except Exception as error:
        if response.is_open:
            response.fail(error)
        else:
            await rejections.report(error).response()(scope, response.receive, response.send)


def _trace(trace_id: str | None) -> None:
    os.environ.pop(_TRACE, None)
    if trace_id:
        os.environ[_TRACE] = trace_id
