"""Decides when a request is sent again, and limits how many inputs are sent in a time."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from chapterverse.errors import ProviderError, note_retry

_T = TypeVar("_T")


class BusyError(ProviderError):
    """The service rejected a request for now.

    Attributes:
        pause: seconds after which it asks to be tried again; None if it doesn't state any.
    """

    def __init__(self, message: str, *, pause: float | None) -> None:
        super().__init__(message, retryable=True)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Tries again after failures that may pass, and not before the time that a service names.

    Attributes:
        tries: the most times that one request is sent.
        total_seconds: the most seconds of all pauses of one request. If a service asks for more, there is no further
            try.
        first_pause: seconds before the second try, unless the service names a time. The pause doubles each time.
        max_pause: the most seconds of such a pause.
        spread: the least and the greatest factor by which a pause is multiplied at random, so that clients that failed
            together don't return together.
        sleep: waits for so many seconds.
        once: whether a request that may have been billed is not sent again, because its cost was reserved once.
    """

    tries: int = 6
    total_seconds: float = 600.0
    first_pause: float = 1.0
    max_pause: float = 60.0
    spread: tuple[float, float] = (0.9, 1.1)
    sleep: Callable[[float], object] = time.sleep
    once: bool = False

    def run(self, send: Callable[[], _T]) -> _T:
        """Return what `send` returns.

        Raises:
            ProviderError: the failure of the last try, or one after which no further try can succeed.
        """
        failed, waited = 0, 0.0
        while True:
            try:
                return send()
            except ProviderError as error:
                failed += 1
                if not error.retryable or (self.once and not error.unbilled):
                    raise
                pause = self.pause(failed, waited, error.pause if isinstance(error, BusyError) else None)
                if pause is None:
                    raise
            note_retry()
            self.sleep(pause)
            waited += pause

    def pause(self, failures: int, spent_seconds: float, requested_pause: float | None = None) -> float | None:
        """Return the seconds to wait before the next try; None after the last one.

        Args:
            failures: the number of tries that failed.
            spent_seconds: the part of `total_seconds` that is used up.
            requested_pause: the seconds that the service asks for; None if it doesn't state any.
        """
        factor = random.uniform(*self.spread)  # noqa: S311 no secret
        pause = min(self.max_pause, self.first_pause * 2.0 ** (failures - 1)) * factor
        pause = pause if requested_pause is None else requested_pause
        return None if failures >= self.tries or spent_seconds + pause > self.total_seconds else pause


class RateLimiter:
    """Lets at most `max_inputs` pass in any `seconds`, and makes the next ones wait. Safe to share between threads."""

    def __init__(
        self,
        max_inputs: int,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.max_inputs = max_inputs
        self.seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._history: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def wait(self, inputs: int) -> None:
        """Return when `inputs` more may be sent. More inputs than the limit wait for an empty window."""
        # A thread that waits keeps the lock, because the others come after it anyway.
        with self._lock:
            while self._history and sum(n for _, n in self._history) + inputs > self.max_inputs:
                at, _ = self._history.popleft()
                self._sleep(max(0.0, at + self.seconds - self._clock()))
            self._history.append((self._clock(), inputs))
