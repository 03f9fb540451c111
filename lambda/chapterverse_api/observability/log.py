"""Log events: one JSON line each, with sizes and timings, and without readers' words by default."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Name = Literal[
    "query_received",
    "embedding_generated",
    "retrieval_performed",
    "results_ranked",
    "response_generated",
    "response_sent",
    "feedback_received",
    "error",
]

Value = str | int | float | bool | list[str] | None

#: The request that this code works for, in a worker thread too: `anyio.to_thread` copies the context.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_logger = logging.getLogger("chapterverse")


def event(
    name: Name,
    *,
    turn_id: str | None,
    thread_id: str | None = None,
    execution_time: float | None = None,
    **fields: Value,
) -> None:
    """Write one JSON line to the logger `chapterverse`: `error` at level ERROR, every other event at INFO.

    Args:
        turn_id: the turn that it belongs to; None before a turn has begun.
        execution_time: seconds since the turn began.
        fields: ids, counts, timings and outcomes; a question or a comment only with `Settings.log_questions`, a
            selection or an answer never.
    """
    head = {"event": name, "turn_id": turn_id, "thread_id": thread_id, "execution_time": execution_time}
    write(head | fields, logging.ERROR if name == "error" else logging.INFO)


def write(fields: Mapping[str, Any], level: int = logging.INFO) -> None:
    """Write `fields` as one JSON line with `time`, ISO 8601 in UTC, and `request_id`, null outside of a request."""
    if _logger.isEnabledFor(level):
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        _logger.log(level, "%s", json.dumps({"time": now, "request_id": request_id.get(), **fields}))


def write_to(stream: TextIO) -> None:
    """Send every event to `stream`, one bare line each, instead of wherever the root logger writes."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    # Replaced, not added: a second call must not double the lines.
    _logger.handlers[:] = [handler]
    _logger.setLevel(logging.INFO)
    _logger.propagate = False
