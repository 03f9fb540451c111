"""Circuit breaker: skips a failing provider so that readers don't wait for it.

The circuit breaker of M. Nygard, "Release It!" (2007). After a few failures in a row it rejects every call of the part.
After a pause it admits one call, whose outcome decides for the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from chapterverse.errors import AnswerWithheld, ChapterVerseError, KeyRefused, ModelLoading, NotAsked, ProviderError

#: Failures in a row after which a part is skipped. One failure may be chance.
FAILURE_THRESHOLD = 3
#: Seconds until a part that is skipped is called again.
RESET_SECONDS = 30.0


class CircuitOpen(NotAsked):
    """The part failed several times in a row, so it is not called."""


class CircuitBreaker:
    """Decides whether one part may be called. Safe to use from several threads.

    Args:
        failures: the errors that are failures of the part.
        error_type: the class of the error to raise while the part is skipped.
        threshold: failures in a row after which the part is skipped.
        reset_seconds: seconds until it is called again.
        clock: seconds.

    Attributes:
        key_refused: whether the part rejected our key in its last failure.
    """

    def __init__(
        self,
        part: str,
        *,
        failures: tuple[type[Exception], ...] = (ProviderError,),
        error_type: type[ChapterVerseError] = CircuitOpen,
        threshold: int = FAILURE_THRESHOLD,
        reset_seconds: float = RESET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._part = part
        self._failure_types = failures
        self._error_type = error_type
        self._threshold = threshold
        self._reset_seconds = reset_seconds
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._last_failure = 0.0
        self.key_refused = False

    @property
    def is_open(self) -> bool:
        """Whether the part has failed too often to be called."""
        return self._failures >= self._threshold

    @property
    def open_error(self) -> ChapterVerseError:
        """The error to raise while the part is skipped."""
        return self._error_type(f"The {self._part} failed {self._threshold} times in a row and is skipped for a while.")

    def check(self) -> None:
        """Raise `open_error` if the part is being skipped."""
        if self.is_open:
            raise self.open_error

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Run the block that calls the part, and learn from how it ends.

        Raises:
            CircuitOpen: the part is being skipped; the block did not run. Other circuits may have another error.
        """
        self._admit()
        try:
            yield
        except (AnswerWithheld, ModelLoading):
            # A reader must not be able to stop the others' answers by a question that no filter lets pass, and a model
            # that is being loaded is asked as soon as it is there.
            self._failures = 0
            raise
        except NotAsked:
            raise
        except self._failure_types as error:
            self.count_failure(error)
            raise
        self._failures, self.key_refused = 0, False

    def count_failure(self, error: Exception) -> None:
        """Count a failure of a call that was made outside `calling`, because it must not be skipped."""
        with self._lock:
            self._failures += 1
            self._last_failure = self._clock()
            self.key_refused = isinstance(error, KeyRefused)

    def _admit(self) -> None:
        with self._lock:
            if not self.is_open:
                return
            if 0 <= self._clock() - self._last_failure < self._reset_seconds:
                raise self.open_error
            # This call is the trial. If it never returns, another one is admitted after the same pause.
            self._last_failure = self._clock()
