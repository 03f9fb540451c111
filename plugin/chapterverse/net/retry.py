"""When a request is sent again, and how many may be sent in a time."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from chapterverse.errors import ProviderError

T = TypeVar("T")

_observer: ContextVar[Callable[[], object] | None] = ContextVar("retry_observer", default=None)


@contextmanager
def observing_retries(observer: Callable[[], object]) -> Iterator[None]:
    """Call `observer` before each request that the block sends again."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def note_retry() -> None:
    """Tell the observer of this context, if there is one, that a request failed and is sent again."""
    if observer := _observer.get():
        observer()


class BusyError(ProviderError):
    """The service rejected a request for now.

    Attributes:
        pause: seconds after which it asks to be tried again; None where it didn't say.
    """

    def __init__(self, message: str, *, pause: float | None) -> None:
        super().__init__(message, retryable=True)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Tries again after failures that may pass, and not before the time that a service names.

    Attributes:
        tries: how often one request is sent.
        seconds: of all pauses of one request; if a service asks for more, there is no further try.
        first: the pause before the second try where the service names no time; it doubles each time.
        longest: the most that it becomes.
        spread: the shares of that pause between which it is drawn, so that clients that failed together don't return
            together.
        sleep: waits; another one makes tests fast.
        once: whether a request that may have been billed is not sent again, because its cost was reserved once.
    """

    tries: int = 6
    seconds: float = 600.0
    first: float = 1.0
    longest: float = 60.0
    spread: tuple[float, float] = (0.9, 1.1)
    sleep: Callable[[float], object] = time.sleep
    once: bool = False

    def ask(self, send: Callable[[], T]) -> T:
        """Return what `send` returns.

        Raises:
            ProviderError: the failure of the last try, or one that no waiting can mend.
        """
        waited = 0.0
        for failed in count(1):
            try:
                return send()
            except ProviderError as error:
                if not error.retryable or (self.once and not error.unbilled):
                    raise
                pause = self.pause(failed, waited, error.pause if isinstance(error, BusyError) else None)
                if pause is None:
                    raise
            note_retry()
            self.sleep(pause)
            waited += pause
        raise AssertionError("the last try returns or raises")

    def pause(self, failures: int, spent_seconds: float, requested_pause: float | None = None) -> float | None:
        """Return the seconds to wait before the next try; None after the last one.

        Args:
            failures: how many tries failed.
            spent_seconds: seconds that count against `seconds`.
            requested_pause: the seconds that the service asks for; None if it doesn't state any.
        """
        own = min(self.longest, self.first * 2.0 ** (failures - 1)) * random.uniform(*self.spread)  # noqa: S311 no secret
        pause = own if requested_pause is None else requested_pause
        return None if failures >= self.tries or spent_seconds + pause > self.seconds else pause


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
        self._history: deque[tuple[float, int]] = deque()
        self._turn = threading.Lock()

    def wait(self, inputs: int) -> None:
        """Return when `inputs` more may be sent; one that is over the rate alone waits for an empty window."""
        # One that waits keeps the others waiting, which are in line behind it anyway.
        with self._turn:
            while self._history and sum(n for _, n in self._history) + inputs > self.most:
                at, _ = self._history.popleft()
                self._sleep(max(0.0, at + self.seconds - self._clock()))
            self._history.append((self._clock(), inputs))
