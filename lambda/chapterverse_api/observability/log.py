"""Log events: one JSON line each, with sizes and timings, and by default without readers' words."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, TextIO

from chapterverse.model import utc_now

EventName = Literal[
    "query_received",
    "query_state",
    "embedding_generated",
    "retrieval_performed",
    "results_ranked",
    "results_filtered",
    "context_prepared",
    "response_generated",
    "response_summary",
    "response_sent",
    "feedback_received",
    "tool_called",
    "error",
]

FieldValue = str | int | float | bool | list[str] | None

#: The current request's id, also in worker threads, because `anyio.to_thread` copies the context.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_logger = logging.getLogger("chapterverse")


def event(
    name: EventName,
    *,
    turn_id: str | None = None,
    thread_id: str | None = None,
    execution_time: float | None = None,
    **fields: FieldValue,
) -> None:
    """Write one JSON line to the logger `chapterverse`, `error` at level ERROR, other events at INFO.

    Args:
        turn_id: the event's turn; None outside a turn.
        execution_time: seconds since the start of the turn.
        fields: ids, counts, timings and outcomes; a question or comment only with `Settings.log_questions`, an answer
            only with `Settings.log_answers`, never a selection.
    """
    head = {"event": name, "turn_id": turn_id, "thread_id": thread_id, "execution_time": execution_time}
    write(head | fields, logging.ERROR if name == "error" else logging.INFO)


def write(fields: Mapping[str, Any], level: int = logging.INFO) -> None:
    """Write `fields` as one JSON line with `time` (ISO 8601, UTC) and `request_id` (null outside of a request)."""
    if _logger.isEnabledFor(level):
        _logger.log(level, "%s", line(fields))


@contextmanager
def request(own_id: str | None) -> Iterator[None]:
    """Log with this id of a request during the block."""
    token = request_id.set(own_id)
    try:
        yield
    finally:
        request_id.reset(token)


def error_origin(error: BaseException) -> dict[str, Any]:
    """Return the `type` of an error and `where` it was raised (file and line), never its message."""
    # The frames of the import system, which each failed import has, don't help.
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
    return {"type": type(error).__name__, "where": where}


def write_to(stream: TextIO) -> None:
    """Send every event to `stream`, one bare line each, instead of to the root logger."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    set_handler(handler)


def set_handler(handler: logging.Handler) -> None:
    """Write every event by `handler` instead of the root logger."""
    # Handlers are replaced, because a second call must not write each line twice.
    _logger.handlers[:] = [handler]
    _logger.setLevel(logging.INFO)
    _logger.propagate = False


def line(fields: Mapping[str, Any]) -> str:
    """Return what `write` writes."""
    return json.dumps({"time": utc_now("milliseconds"), "request_id": request_id.get(), **fields})
