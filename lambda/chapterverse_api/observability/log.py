"""Log events: one JSON line each, with sizes and timings, and by default without readers' words."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from queue import Full, Queue
from threading import Lock, Thread
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

#: The most lines in the queue; further ones are dropped.
_MAX_QUEUED_LINES = 1000
#: Seconds that an ending process waits for the queue.
_CLOSE_SECONDS = 1.0
#: Seconds in which `ThrottledErrors` writes an error once.
_THROTTLE_SECONDS = 10.0


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
        _logger.log(level, "%s", _line(fields))


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


class LineWriter(logging.Handler):
    """Writes lines in its own thread, so that a full pipe doesn't block the answers. Thread-safe.

    If the queue is full, lines are dropped, and the next line written is preceded by their number.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: Queue[str | None] = Queue(_MAX_QUEUED_LINES)
        self._dropped = 0
        self._thread = Thread(target=self._write, name="chapterverse-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(record.getMessage())
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait a moment for the queued lines."""
        super().close()
        with suppress(Full):
            self._lines.put(None, timeout=_CLOSE_SECONDS)
        self._thread.join(_CLOSE_SECONDS)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                head = {"event": "error", "turn_id": None, "thread_id": None, "execution_time": None}
                message = "Lines of the log were dropped, because what reads it is too slow."
                line = f"{_line(head | {'code': 'log_dropped', 'message': message, 'times': dropped})}\n{line}"
            # Not a file object, because its lock would be held while the pipe is full, and the process could not end.
            data = f"{line}\n".encode()
            with suppress(OSError):
                while data:
                    data = data[os.write(self._descriptor, data) :]


class ThrottledErrors:
    """Logs errors that a client can cause at will: each once in ten seconds, with the number of times.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._written: dict[tuple[FieldValue, ...], tuple[float, int]] = {}

    def log(self, code: str, message: str | None = None, error: BaseException | None = None) -> None:
        """Write an `error` event, or only count it if the same one was just written."""
        fields: dict[str, Any] = {"code": code, **(error_origin(error) if error else {}), "message": message}
        key, now = tuple(fields.values()), self._clock()
        with self._lock:
            last, missed = self._written.get(key, (-_THROTTLE_SECONDS, 0))
            is_throttled = now - last < _THROTTLE_SECONDS
            self._written[key] = (last, missed + 1) if is_throttled else (now, 0)
        if not is_throttled:
            event("error", **fields, times=missed + 1)


def _line(fields: Mapping[str, Any]) -> str:
    return json.dumps({"time": utc_now("milliseconds"), "request_id": request_id.get(), **fields})
