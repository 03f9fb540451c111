"""When a turn must be over: some seconds after it began, or as soon as its reader is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

#: Seconds for a whole answer: API Gateway gives up after 29, and most readers before.
TOTAL_SECONDS = 25.0


class Cutoff:
    """The end of one turn. Waits of a turn ask it how long they may take, and tell it how they can be ended."""

    def __init__(self, seconds: float = TOTAL_SECONDS) -> None:
        self._end = time.monotonic() + seconds
        self._lock = Lock()
        self._closers: list[Callable[[], None]] = []
        self._cut = False

    @property
    def left(self) -> float:
        """Seconds until the end, 0 after it."""
        return 0.0 if self._cut else max(0.0, self._end - time.monotonic())

    @property
    def is_cut(self) -> bool:
        """Whether the reader is gone."""
        return self._cut

    def cut(self) -> None:
        """End what is waited for now, from whichever thread: nobody is left to read it."""
        with self._lock:
            self._cut = True
            closers = list(self._closers)
        for close in closers:
            close()

    @contextmanager
    def closing(self, close: Callable[[], None]) -> Iterator[None]:
        """Call `close` if the turn is cut while the block runs, or was before; it may come from another thread."""
        with self._lock:
            self._closers.append(close)
            cut = self._cut
        if cut:
            close()
        try:
            yield
        finally:
            with self._lock:
                self._closers.remove(close)
