"""An answer as server-sent events: `meta`, `delta`…, then `final`, or `error` if it broke on the way."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain

from anyio import CancelScope, create_task_group, to_thread
from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from chapterverse_api import refusals
from chapterverse_api.contract import ChatResponse, Delta, Meta, StreamError
from chapterverse_api.cutoff import Cutoff

Event = Meta | Delta | ChatResponse
Events = Generator[Event, None, None]

MEDIA_TYPE = "text/event-stream"
# `x-accel-buffering` is how nginx and its kin are told to pass each event on at once.
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_NAMES: dict[type[BaseModel], str] = {Meta: "meta", Delta: "delta", ChatResponse: "final", StreamError: "error"}


class Unfinished(Exception):
    """The answer ended without its final part."""


def wanted(accept: str) -> bool:
    """Return whether the `Accept` header asks for a stream."""
    ranges = (part.replace(" ", "").lower().split(";") for part in accept.split(","))
    return any(kind == MEDIA_TYPE and "q=0" not in parameters for kind, *parameters in ranges)


def final(events: Events) -> ChatResponse:
    """Run the answer to its end and return it whole.

    Raises:
        Unfinished: it ended without one.
    """
    last = None
    for last in events:  # noqa: B007 - only the last one counts
        pass
    if not isinstance(last, ChatResponse):
        raise Unfinished
    return last


class EventStream(StreamingResponse):
    """Streams an answer. The first event is made before the headers go out, so an early failure is an HTTP error.

    `events` runs in worker threads, not always the same, one step at a time; it is closed when the client is gone, and
    `cutoff` is cut, which ends even a wait for the model's next word.
    """

    def __init__(self, events: Events, cutoff: Cutoff) -> None:
        first = next(events, None)
        if first is None:
            raise Unfinished
        super().__init__(_frames(first, events, cutoff), media_type=MEDIA_TYPE, headers=_HEADERS)
        self._events = events
        self._cutoff = cutoff

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        # Starlette's own way listens for a client that leaves on some servers only, and can't wake a waiting thread.
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await self.stream_response(send)
                tasks.cancel_scope.cancel()
        finally:
            # Shielded: a client that left cancels this task, and then the model would go on writing unheard.
            with CancelScope(shield=True):
                await to_thread.run_sync(self._events.close)

    async def _watch(self, receive: Receive, streaming: CancelScope) -> None:
        await self.listen_for_disconnect(receive)
        self._cutoff.cut()
        streaming.cancel()


def _frames(first: Event, rest: Iterator[Event], cutoff: Cutoff) -> Iterator[str]:
    turn_id = first.turn_id if isinstance(first, Meta) else None
    last = first
    try:
        for last in chain((first,), rest):
            yield _frame(last)
        if not isinstance(last, ChatResponse):
            raise Unfinished
    except Exception as error:
        if cutoff.is_cut:
            return
        refusal = refusals.report(error, turn_id=turn_id)
        # What fails after the final event is for the log alone: the reader has the whole answer.
        if not isinstance(last, ChatResponse):
            yield _frame(StreamError(code=refusal.code, message=refusal.message, retryable=refusal.retryable))


def _frame(event: Event | StreamError) -> str:
    return f"event: {_NAMES[type(event)]}\ndata: {event.model_dump_json()}\n\n"
