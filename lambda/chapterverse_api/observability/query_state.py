"""The states of one question, each logged as the event `query_state`.

    created → embedding → searching → completed
                 ↑ ↓          ↓
                failed ←──────┘

Each failed attempt to embed a question ends in `failed`, and the next attempt goes back to `embedding`. The last
attempt is by words alone and needs no model. So a question fails only if no index can be read or an argument is
invalid. A question that needs no search goes from `created` to `completed`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from uuid import uuid4

from chapterverse.model import utc_now
from chapterverse_api.observability import log

QueryState: TypeAlias = Literal["created", "embedding", "searching", "completed", "failed"]

#: The states that may follow each. A second search for the same question does not go back.
_FOLLOWING: dict[QueryState, tuple[QueryState, ...]] = {
    "created": ("embedding", "searching", "completed", "failed"),
    "embedding": ("searching", "failed"),
    "searching": ("completed", "failed"),
    "failed": ("embedding",),
    "completed": (),
}


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
            log.event(
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
