"""Sends an answer as server-sent events `meta`, `tool`…, `delta`…, then `final` or `error`; or as one JSON document.

Another format has a writer of its own, see `completions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from anyio import CancelScope, create_task_group, to_thread
from pydantic import BaseModel
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from chapterverse_api import rejections
from chapterverse_api.contract import AnswerEvent, ChatResponse, Delta, Events, Meta, ToolUse, dump
from chapterverse_api.deadline import Deadline
from chapterverse_api.observability import metrics

MEDIA_TYPE = "text/event-stream"
# `x-accel-buffering` tells nginx and similar proxies to pass on each event at once.
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_NAMES: dict[type[BaseModel], str] = {Meta: "meta", Delta: "delta", ToolUse: "tool", ChatResponse: "final"}


class IncompleteAnswer(Exception):
    """The answer ended without its last part."""


def wants_stream(accept: str) -> bool:
    """Return whether the `Accept` header asks for a stream."""
    ranges = (part.replace(" ", "").lower().split(";") for part in accept.split(","))
    return any(kind == MEDIA_TYPE and "q=0" not in parameters for kind, *parameters in ranges)


def final(events: Events) -> ChatResponse:
    """Run the answer to its end and return its last part.

    Raises:
        IncompleteAnswer: the last part is missing.
    """
    last = None
    for last in events:  # noqa: B007 - only the last one counts
        pass
    if not isinstance(last, ChatResponse):
        raise IncompleteAnswer
    return last


def frame(event: AnswerEvent) -> str:
    """Return the server-sent event for a part of an answer."""
    return f"event: {_NAMES[type(event)]}\ndata: {event.model_dump_json()}\n\n"


class EventStream(StreamingResponse):
    """Streams an answer. The first event is made before the headers are sent, so an early failure is an HTTP error.

    `events` runs in worker threads, one step at a time. If the client disconnects, it is closed and `deadline` is
    aborted, which also ends a wait for the model. `write` returns the text that is sent for a part.
    """

    def __init__(self, events: Events, deadline: Deadline, write: Callable[[AnswerEvent], str] = frame) -> None:
        super().__init__((), media_type=MEDIA_TYPE, headers=_HEADERS)
        self._events = events
        self._deadline = deadline
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await cancel_on_disconnect(receive, self._deadline, partial(self._send, scope["path"], send))
        finally:
            # Shielded, because a disconnect cancels this task and the model would go on writing.
            with CancelScope(shield=True):
                await to_thread.run_sync(self._events.close)

    async def _send(self, path: str, send: Send) -> None:
        first = await to_thread.run_sync(next, self._events, None)
        if first is None:
            raise IncompleteAnswer
        self.body_iterator = iterate_in_threadpool(self._frames(first, path))
        await self.stream_response(send)

    def _frames(self, first: AnswerEvent, path: str) -> Iterator[str]:
        turn_id = first.turn_id if isinstance(first, Meta) else None
        last = first
        try:
            for last in chain((first,), self._events):
                yield self._write(last)
            if not isinstance(last, ChatResponse):
                raise IncompleteAnswer
        except Exception as error:
            if self._deadline.is_aborted:
                return
            rejection = rejections.report(error, turn_id=turn_id)
            # After the final event a failure is only logged, because the reader has the whole answer.
            if not isinstance(last, ChatResponse):
                metrics.count_error()
                yield rejection.event(path)


class JsonAnswer(Response):
    """Sends an answer as the JSON document that `write` returns. A disconnect ends the work as for a stream."""

    def __init__(
        self, events: Events, deadline: Deadline, write: Callable[[ChatResponse], dict[str, Any]] = dump
    ) -> None:
        super().__init__()
        self._events = events
        self._deadline = deadline
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await cancel_on_disconnect(receive, self._deadline, partial(self._send, scope, receive, send))

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await to_thread.run_sync(final, self._events)
        await JSONResponse(self._write(answer))(scope, receive, send)


async def cancel_on_disconnect(receive: Receive, deadline: Deadline, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work. If the client disconnects meanwhile, abort the turn and ignore failures.

    Starlette's own way works on some servers only, and can't wake a waiting thread.
    """
    failure: Exception | None = None
    async with create_task_group() as tasks:
        tasks.start_soon(_watch, receive, deadline, tasks.cancel_scope)
        try:
            await work()
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure and not deadline.is_aborted:
        raise failure


async def _watch(receive: Receive, deadline: Deadline, working: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    deadline.abort()
    working.cancel()
