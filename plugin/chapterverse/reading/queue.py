"""Lets as many questions be read at once as there are processors, and only those that can be read in time.

Without an estimate every question of a crowd waits until its time is over, begins to read then, and gives up. So each
passage that is read tells how long the next ones take, and a question that they leave no time for is not read at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

#: Seconds of a passage before the first one was read (eight take 340 ms, says `figures.md`).
FIRST_ESTIMATE = 0.04
#: How much of the estimate the latest passage is: the last question's eight are two thirds of it.
_LATEST_SHARE = 1 / 8
#: Seconds for which a question that was not read is remembered.
LATE_SECONDS = 60.0


class ReadingQueue:
    """The questions that wait to be read, and those that are. Safe to use from several threads.

    Args:
        processors: how many are read at once.
        clock: seconds.
    """

    def __init__(self, processors: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._processors, self._clock = processors, clock
        self._free = BoundedSemaphore(processors)
        self._lock = Lock()
        #: Of all questions that wait or are read.
        self._passages = 0
        self._seconds_each = FIRST_ESTIMATE
        self._late_until = float("-inf")

    @property
    def is_late(self) -> bool:
        """Whether a question was not read in the last minute, because others took its time."""
        return self._clock() < self._late_until

    def count_late(self) -> None:
        """Remember that a question was not read."""
        self._late_until = self._clock() + LATE_SECONDS

    @contextmanager
    def turn(self, passages: int, seconds_left: Callable[[], float]) -> Iterator[bool]:
        """Wait until a question may be read, and yield whether it may.

        Args:
            passages: how many it has.
            seconds_left: the seconds until they must be read.
        """
        ahead = self._add(passages)
        # Alone it always tries, or one slow moment would end all reading.
        needed = (ahead / self._processors + passages) * self._seconds_each if ahead else 0.0
        try:
            if seconds_left() < needed or not self._free.acquire(timeout=seconds_left()):
                yield False
                return
            try:
                yield not ahead or seconds_left() >= passages * self._seconds_each
            finally:
                self._free.release()
        finally:
            self._add(-passages)

    def _add(self, passages: int) -> int:
        """Count passages, and return how many there were."""
        with self._lock:
            before = self._passages
            self._passages += passages
        return before

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Run the block that reads one passage, and learn how long the next ones take."""
        started = self._clock()
        yield
        with self._lock:
            self._seconds_each += (self._clock() - started - self._seconds_each) * _LATEST_SHARE
