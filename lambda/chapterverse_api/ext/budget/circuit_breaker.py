"""Circuit breaker: skips a failing provider so that readers don't wait for it.

The circuit breaker of M. Nygard, "Release It!" (2007). After a few failures in a row it rejects every call of the part.
After a pause it admits one call, whose outcome decides for the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from threading import Lock

from chapterverse.errors import AnswerWithheld, ChapterVerseError, KeyRefused, ModelLoading, NotAsked, ProviderError

#: Failures in a row after which a part is skipped. One failure may be chance.
FAILURE_THRESHOLD = 3
#: Seconds until a part that is skipped is called again.
RESET_SECONDS = 30.0


class CircuitOpen(NotAsked):
    """The part failed several times in a row, so it is not called."""


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """Decides whether one part may be called. Safe to use from several threads.

    Attributes:
        failures: the errors that are failures of the part.
        error_type: the class of the error to raise while the part is skipped.
        threshold: failures in a row after which the part is skipped.
        reset_seconds: seconds until it is called again.
        clock: seconds.
        key_refused: whether the part rejected our key in its last failure.
    """

    part: str
    _: KW_ONLY
    failures: tuple[type[Exception], ...] = (ProviderError,)
    error_type: type[ChapterVerseError] = CircuitOpen
    threshold: int = FAILURE_THRESHOLD
    reset_seconds: float = RESET_SECONDS
    clock: Callable[[], float] = time.monotonic
    key_refused: bool = field(default=False, init=False)
    _count: int = field(default=0, init=False)
    _last_failure: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @property
    def is_open(self) -> bool:
        """Whether the part has failed too often to be called."""
        return self._count >= self.threshold

    @property
    def open_error(self) -> ChapterVerseError:
        """The error to raise while the part is skipped."""
        return self.error_type(f"The {self.part} failed {self.threshold} times in a row and is skipped for a while.")

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
            self._count = 0
            raise
        except NotAsked:
            raise
        except self.failures as error:
            self.count_failure(error)
            raise
        self._count, self.key_refused = 0, False

    def count_failure(self, error: Exception) -> None:
        """Count a failure of a call that was made outside `calling`, because it must not be skipped."""
        with self._lock:
            self._count += 1
            self._last_failure = self.clock()
            self.key_refused = isinstance(error, KeyRefused)

    def _admit(self) -> None:
        with self._lock:
            if not self.is_open:
                return
            if 0 <= self.clock() - self._last_failure < self.reset_seconds:
                raise self.open_error
            # This call is the trial. If it never returns, another one is admitted after the same pause.
            self._last_failure = self.clock()
