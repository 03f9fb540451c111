"""Sends an answer as one JSON document."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from anyio import to_thread
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from chapterverse_api.contract import ChatResponse, Events, dump
from chapterverse_api.deadline import Deadline
from chapterverse_api.http.disconnect import cancel_on_disconnect


class IncompleteAnswer(Exception):
    """The answer ended without its last part."""


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
        answer = await to_thread.run_sync(read_final, self._events)
        await JSONResponse(self._write(answer))(scope, receive, send)


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
