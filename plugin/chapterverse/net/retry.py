"""Retry and rate limiting for model calls during a build."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from chapterverse.errors import ProviderError

T = TypeVar("T")


class BusyError(ProviderError):
    """The service said no for now.

    Attributes:
        pause: seconds after which it asks to be tried again; None where it didn't say.
    """

    def __init__(self, message: str, *, pause: float | None) -> None:
        super().__init__(message, retryable=True)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Tries again after failures that may pass, and not before a service wants to be asked again.

    Attributes:
        tries: how often one request is sent.
        seconds: what may be waited for one request in all; a service that asks for more is given up at once.
        longest: the most that is waited between two tries where the service names no time: 1 s, doubled each time.
        once: whether a request that may have been billed is not sent again: what it costs was set aside once.
    """

    tries: int = 6
    seconds: float = 600.0
    longest: float = 60.0
    sleep: Callable[[float], object] = time.sleep
    once: bool = False

    def ask(self, send: Callable[[], T]) -> T:
        """Return what `send` returns.

        Raises:
            ProviderError: the failure of the last try, or one that no waiting can mend.
        """
        waited = 0.0
        for attempt in range(self.tries - 1):
            try:
                return send()
            except ProviderError as error:
                if not error.retryable or (self.once and not error.unbilled):
                    raise
                pause = self._pause(error, attempt)
                waited += pause
                if waited > self.seconds:
                    raise
            self.sleep(pause)
        return send()

    def _pause(self, error: ProviderError, attempt: int) -> float:
        asked = error.pause if isinstance(error, BusyError) else None
        if asked is not None:
            return asked
        # Spread by a tenth to either side, so that builds that failed together don't return together.
        return min(2.0**attempt, self.longest) * random.uniform(0.9, 1.1)  # noqa: S311 no secret


class RateLimiter:
    """Lets so many inputs pass in any window of time, and makes the next ones wait. Safe to share between threads."""

    def __init__(
        self,
        most: int,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.most = most
        self.seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[tuple[float, int]] = deque()
        self._turn = threading.Lock()

    def wait(self, inputs: int) -> None:
        """Return when `inputs` more may be sent; one that is over the rate alone waits for an empty window."""
        # Whoever waits keeps the others waiting, which are in line behind it anyway.
        with self._turn:
            while self._sent and sum(n for _, n in self._sent) + inputs > self.most:
                at, _ = self._sent.popleft()
                self._sleep(max(0.0, at + self.seconds - self._clock()))
            self._sent.append((self._clock(), inputs))
