"""The log: one JSON line for each event, with sizes and timings, and by default without readers' words."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, TextIO, TypeAlias
from uuid import uuid4

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
_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_logger = logging.getLogger("chapterverse")

#: What was measured of the current request, by the names of `ext.aws.metrics`; None outside of one.
_measured: ContextVar[dict[str, float] | None] = ContextVar("measured", default=None)

QueryState: TypeAlias = Literal["created", "embedding", "searching", "completed", "failed"]

#: The states of a question, each logged as the event `query_state`, and those that may follow it:
#:
#:     created → embedding → searching → completed
#:                  ↑ ↓          ↓
#:                 failed ←──────┘
#:
#: Each failed attempt to embed a question ends in `failed`, and the next attempt goes back to `embedding`. The last
#: attempt is by words alone and needs no model. So a question fails only if no index can be read or an argument is
#: invalid. A question that needs no search goes from `created` to `completed`, and a second search for the same
#: question does not go back.
_FOLLOWING: dict[QueryState, tuple[QueryState, ...]] = {
    "created": ("embedding", "searching", "completed", "failed"),
    "embedding": ("searching", "failed"),
    "searching": ("completed", "failed"),
    "failed": ("embedding",),
    "completed": (),
}


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
def request(own_id: str | None) -> Iterator[dict[str, float]]:
    """Log with this id of a request during the block, and yield what is measured of the request."""
    measured: dict[str, float] = {}
    tokens = _request_id.set(own_id), _measured.set(measured)
    try:
        yield measured
    finally:
        _request_id.reset(tokens[0])
        _measured.reset(tokens[1])


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
    return json.dumps({"time": utc_now("milliseconds"), "request_id": _request_id.get(), **fields})


def measure(**values: float) -> None:
    """Add values to the metrics of the request, if there is one."""
    measured = _measured.get()
    if measured is not None:
        measured |= values


@dataclass(slots=True)
class QueryProgress:
    """Tracks and logs the state of one question.

    Attributes:
        id: the `query_id`, 32 hexadecimal digits. A question that gets an answer has the id of its turn.
        turn_id: the id of the turn; None without a turn, as for `/v1/retrieve`.
        created_at: the time of the question, ISO 8601, UTC, milliseconds.
        processed_at: the time at which the question was completed or failed; None before.
        model: the model that embedded the question; None if only words were searched.
        attempts: the number of tries to embed the question: 1 if none failed, 0 without a search.
        history: every state with the seconds since the creation.
        started: the time of the question, by `time.perf_counter`.
        logged: whether the states are logged; searches by the owner are not.
    """

    id: str
    turn_id: str | None = None
    thread_id: str | None = None
    created_at: str = field(default_factory=lambda: utc_now("milliseconds"))
    processed_at: str | None = None
    model: str | None = None
    attempts: int = 0
    state: QueryState = "created"
    history: list[tuple[QueryState, float]] = field(default_factory=lambda: [("created", 0.0)])
    logged: bool = True
    started: float = field(default_factory=time.perf_counter)

    def log_created(self) -> None:
        self._log(None)

    def enter(self, state: QueryState) -> None:
        """Go on to a state and log it. Do nothing if the question is past it."""
        if state not in _FOLLOWING[self.state]:
            return
        previous, self.state = self.state, state
        if state == "embedding":
            self.attempts += 1
        self.processed_at = utc_now("milliseconds") if state in ("completed", "failed") else None
        self.history.append((state, self.seconds))
        self._log(previous)

    def retry(self) -> None:
        """Note a failed attempt, and begin the next one."""
        self.enter("failed")
        self.enter("embedding")

    @property
    def seconds(self) -> float:
        return round(time.perf_counter() - self.started, 6)

    def _log(self, previous: QueryState | None) -> None:
        if self.logged:
            event(
                "query_state",
                turn_id=self.turn_id,
                thread_id=self.thread_id,
                execution_time=self.seconds,
                query_id=self.id,
                state=self.state,
                previous=previous,
                attempts=self.attempts,
                model=self.model,
            )


@contextmanager
def search_progress(turn_id: str | None = None, thread_id: str | None = None) -> Iterator[QueryProgress]:
    """Log the states of a search with a query of its own. An error makes it `failed`; else it ends as `completed`.

    Args:
        turn_id: the id of the turn that it is a part of.
        thread_id: the conversation of that turn.
    """
    progress = QueryProgress(uuid4().hex, turn_id, thread_id)
    progress.log_created()
    try:
        yield progress
    except Exception:
        progress.enter("failed")
        raise
    progress.enter("completed")
