"""Sends an answer as server-sent events: `meta`, `tool`…, `delta`…, then `final` or `error`.

Another format has a writer of its own, see `completions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from anyio import CancelScope, to_thread
from pydantic import BaseModel
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from chapterverse_api import rejections
from chapterverse_api.contract import AnswerEvent, ChatResponse, Delta, Events, Meta, ToolUse
from chapterverse_api.deadline import Deadline
from chapterverse_api.http.disconnect import cancel_on_disconnect
from chapterverse_api.http.json_answer import IncompleteAnswer
from chapterverse_api.observability import metrics

MEDIA_TYPE = "text/event-stream"
# `x-accel-buffering` tells nginx and similar proxies to pass on each event at once.
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_NAMES: dict[type[BaseModel], str] = {Meta: "meta", Delta: "delta", ToolUse: "tool", ChatResponse: "final"}


def wants_stream(accept: str) -> bool:
    """Whether the `Accept` header asks for a stream."""
    ranges = (part.replace(" ", "").lower().split(";") for part in accept.split(","))
    return any(kind == MEDIA_TYPE and "q=0" not in parameters for kind, *parameters in ranges)


def frame(event: AnswerEvent) -> str:
    """Return the server-sent event for a part of an answer."""
    return f"event: {_NAMES[type(event)]}\ndata: {event.model_dump_json(exclude_none=isinstance(event, ToolUse))}\n\n"


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
