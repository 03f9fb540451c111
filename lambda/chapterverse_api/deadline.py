"""The deadline of a turn: some seconds after it began, or as soon as its reader leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from threading import Event, Lock

from chapterverse.errors import ProviderError

#: Seconds for the models of a whole answer. With one more for our own code, a turn takes 25, because API Gateway ends a
#: request after 29.
TOTAL_SECONDS = 24.0
#: Seconds of a function's time beside its models': one for our own code, one for the runtime to end the answer.
_FUNCTION_SECONDS = 2.0


class ClientDisconnected(Exception):
    """The reader has left, so no error is sent."""


class Deadline:
    """The end of one turn. Each wait asks it how long it may take, and registers how to end it early."""

    def __init__(self, seconds: float = TOTAL_SECONDS) -> None:
        self._end = time.monotonic() + seconds
        self._lock = Lock()
        self._closers: list[Callable[[], None]] = []
        self._aborted = Event()

    @classmethod
    def for_lambda(cls, context: object) -> Deadline:
        """Return the end of a turn that begins now: earlier than usual if AWS Lambda's `context` leaves less time."""
        get_remaining_ms = getattr(context, "get_remaining_time_in_millis", None)
        return cls(min(TOTAL_SECONDS, get_remaining_ms() / 1000 - _FUNCTION_SECONDS)) if get_remaining_ms else cls()

    @property
    def seconds_left(self) -> float:
        """Seconds until the end, 0 after it."""
        return 0.0 if self.is_aborted else max(0.0, self._end - time.monotonic())

    @property
    def is_aborted(self) -> bool:
        """Whether the reader is gone."""
        return self._aborted.is_set()

    def step(self, seconds: float) -> Deadline:
        """Return the deadline of one step, so many seconds away, never later than this one. Aborting this aborts it."""
        step = copy(self)
        step._end = min(self._end, time.monotonic() + seconds)
        return step

    def abort(self) -> None:
        """End every wait of the turn, because the reader has left. Safe to call from any thread."""
        with self._lock:
            self._aborted.set()
            closers = list(self._closers)
        for close in closers:
            close()

    @contextmanager
    def closing(self, close: Callable[[], None]) -> Iterator[None]:
        """Call `close` if the turn is aborted while the block runs, or was before. Another thread may call it."""
        with self._lock:
            self._closers.append(close)
            aborted = self.is_aborted
        if aborted:
            close()
        try:
            yield
        finally:
            with self._lock:
                self._closers.remove(close)

    def check(self) -> None:
        """Raise `ClientDisconnected` if the reader has left, before a step that may cost money."""
        if self.is_aborted:
            raise ClientDisconnected

    @contextmanager
    def raising_on_disconnect(self) -> Iterator[None]:
        """Run a block that waits for a model.

        Raises:
            ClientDisconnected: the turn was aborted, which ended the wait. The model did not fail.
        """
        try:
            yield
        except ProviderError:
            if self.is_aborted:
                raise ClientDisconnected from None
            raise
