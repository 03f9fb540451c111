"""Sends an answer as one JSON document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import JSONResponse, Response

from chapterverse_api.contract import ChatResponse, Events, dump
from chapterverse_api.deadline import Deadline
from chapterverse_api.http.disconnect import WorkerResponse


class IncompleteAnswer(Exception):
    """The answer ended without its last part."""


def respond_with_json(
    events: Events, deadline: Deadline, write: Callable[[ChatResponse], dict[str, Any]] = dump
) -> Response:
    """Return the response that runs the answer to its end and sends the document that `write` returns for it."""
    return WorkerResponse(lambda: JSONResponse(write(read_final(events))), deadline)


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
