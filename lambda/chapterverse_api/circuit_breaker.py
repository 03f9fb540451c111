"""Circuit breaker: skips a failing provider so that readers don't wait for it.

The circuit breaker of M. Nygard, "Release It!" (2007). After a few failures in a row it rejects every call of the part.
After a pause it admits one call, whose outcome decides for the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from chapterverse.errors import AnswerWithheld, ChapterVerseError, KeyRefused, ProviderError

#: Failures in a row after which a part is skipped, and the seconds until it is tried again.
FAILURES = 3
REST_SECONDS = 30.0


class CircuitOpen(ProviderError):
    """The part failed several times in a row, so it is not called."""

    unbilled = True


class CircuitBreaker:
    """Decides whether one part may be called. Safe to use from several threads.

    Args:
        failures: the errors that are failures of the part.
        error_type: the class of the error to raise while the part is skipped.
        clock: seconds.

    Attributes:
        key_refused: whether the last failure was that the part doesn't know our key.
    """

    def __init__(
        self,
        part: str,
        *,
        failures: tuple[type[Exception], ...] = (ProviderError,),
        error_type: type[ChapterVerseError] = CircuitOpen,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._part = part
        self._failure_types = failures
        self._error_type = error_type
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._since = 0.0
        self.key_refused = False

    @property
    def open(self) -> bool:
        """Whether the part has failed too often to be called."""
        return self._failures >= FAILURES

    @property
    def open_error(self) -> ChapterVerseError:
        """The error to raise while the part is skipped."""
        return self._error_type(f"The {self._part} failed {FAILURES} times in a row and is left alone for a while.")

    def check(self) -> None:
        """Raise `open_error` if the part is being skipped."""
        if self.open:
            raise self.open_error

    @contextmanager
    def asking(self, *answers: type[Exception]) -> Iterator[None]:
        """Run the block that asks the part, and learn from how it ends.

        Args:
            answers: exceptions that say that the part did answer, in a way of its own.

        Raises:
            CircuitOpen: the part is being skipped; the block did not run. Other circuits may have another error.
        """
        passing: tuple[type[Exception], ...] = (AnswerWithheld, *answers)
        self._admit()
        try:
            yield
        except passing:
            # A reader must not be able to stop the others' answers by a question that no filter lets pass.
            self._failures = 0
            raise
        except self._failure_types as error:
            with self._lock:
                self._failures += 1
                self._since = self._clock()
                self.key_refused = isinstance(error, KeyRefused)
            raise
        self._failures, self.key_refused = 0, False

    def _admit(self) -> None:
        with self._lock:
            if not self.open:
                return
            if 0 <= self._clock() - self._since < REST_SECONDS:
                raise self.open_error
            # This one tries; should it never come back, the next may in as many seconds.
            self._since = self._clock()
