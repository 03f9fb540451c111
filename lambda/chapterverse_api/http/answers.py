"""Runs an answer for a request, and sends it as one JSON document or as server-sent events.

The events are `meta`, `tool`…, `delta`…, then `final` or `error`. Another format has writers of its own, see
`ext.agents.completions`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, create_task_group, to_thread
from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from chapterverse_api import log, rejections
from chapterverse_api.contract import AnswerEvent, ChatQuery, ChatResponse, Delta, Events, Meta, ToolUse, dump
from chapterverse_api.deadline import Deadline

if TYPE_CHECKING:
    from chapterverse_api.service import Service

EVENT_STREAM = "text/event-stream"
# `x-accel-buffering` tells nginx and similar proxies to pass on each event at once.
_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_EVENT_NAMES: dict[type[BaseModel], str] = {Meta: "meta", Delta: "delta", ToolUse: "tool", ChatResponse: "final"}


class IncompleteAnswer(Exception):
    """The answer ended without its last part."""


def get_service(app: FastAPI) -> Service:
    """Return the service of an application, `request.app` in a route. It opens at the first call.

    Raises:
        ChapterVerseError: it can't be opened.
    """
    load: Callable[[], Service] = app.state.service
    return load()


def get_deadline(request: Request) -> Deadline:
    """Return the time at which the answer must end: on Lambda before the function does."""
    return Deadline.for_lambda(request.scope.get("aws.context"))


def get_origins(request: Request) -> tuple[str, str]:
    """Return the origins that the reader's page may have: the one that the guard has checked, and this service's."""
    return request.headers.get("origin", ""), str(request.base_url)


def wants_stream(accept: str) -> bool:
    """Whether the `Accept` header asks for a stream."""
    ranges = (part.replace(" ", "").lower().split(";") for part in accept.split(","))
    return any(kind == EVENT_STREAM and "q=0" not in parameters for kind, *parameters in ranges)


def _event_frame(event: AnswerEvent) -> str:
    """Return the server-sent event for a part of an answer."""
    data = event.model_dump_json(exclude_none=isinstance(event, ToolUse))
    return f"event: {_EVENT_NAMES[type(event)]}\ndata: {data}\n\n"


def answer_request(
    query: ChatQuery,
    request: Request,
    *,
    stream: bool,
    frame: Callable[[AnswerEvent], str] = _event_frame,
    document: Callable[[ChatResponse], dict[str, Any]] = dump,
) -> Response:
    """Return the response that answers a query.

    Args:
        stream: whether the parts are sent as they are made.
        frame: returns the text that a stream sends for a part.
        document: returns what is sent without a stream.
    """
    deadline = get_deadline(request)
    events = get_service(request.app).chat(query, deadline=deadline, origins=get_origins(request))
    if stream:
        return _EventStream(events, deadline, frame)
    return WorkerResponse(lambda: JSONResponse(document(read_final(events))), deadline)


def read_final(events: Events) -> ChatResponse:
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


class WorkerResponse(Response):
    """Runs `respond` in a worker thread and sends the response that it returns.

    If the client disconnects, `deadline` is aborted: the work ends, and nothing more is paid for.
    """

    def __init__(self, respond: Callable[[], Response], deadline: Deadline) -> None:
        super().__init__()
        self._respond = respond
        self._deadline = deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _cancel_on_disconnect(receive, self._deadline, partial(self._send, scope, receive, send))

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await to_thread.run_sync(self._respond)
        await response(scope, receive, send)


class _EventStream(StreamingResponse):
    """Streams an answer. The first event is made before the headers are sent, so an early failure is an HTTP error.

    `events` runs in worker threads, one step at a time. If the client disconnects, it is closed and `deadline` is
    aborted, which also ends a wait for the model.
    """

    def __init__(self, events: Events, deadline: Deadline, frame: Callable[[AnswerEvent], str]) -> None:
        super().__init__((), media_type=EVENT_STREAM, headers=_STREAM_HEADERS)
        self._events = events
        self._deadline = deadline
        self._frame = frame

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await _cancel_on_disconnect(receive, self._deadline, partial(self._send, scope["path"], send))
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
                yield self._frame(last)
            if not isinstance(last, ChatResponse):
                raise IncompleteAnswer
        except Exception as error:
            if self._deadline.is_aborted:
                return
            rejection = rejections.report(error, turn_id=turn_id)
            # After the final event a failure is only logged, because the reader has the whole answer.
            if not isinstance(last, ChatResponse):
                # The status was sent before.
                log.measure(Errors=1)
                yield rejection.event(path)


async def _cancel_on_disconnect(receive: Receive, deadline: Deadline, work: Callable[[], Awaitable[None]]) -> None:
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


async def _watch(receive: Receive, deadline: Deadline, work_scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    deadline.abort()
    work_scope.cancel()
