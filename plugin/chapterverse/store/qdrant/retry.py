"""How often and how long a publisher tries again; readers have a person waiting and try once (see `rest`)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

#: Statuses of a server that may answer later.
RETRIED = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class QdrantRetry:
    """Tries of one request: after `pause` seconds, twice as many each time, at random between half and all.

    Attributes:
        longest: the most seconds between two tries, but where the server asks for more.
        request: seconds that one try may take; connecting has its own, shorter bound.
        total: seconds after which no further try begins; a lease outlives them.
        sleep: waits; another one makes tests fast.
    """

    tries: int = 6
    pause: float = 0.25
    longest: float = 8.0
    request: int = 10
    total: float = 15.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, failed: int, started: float, asked: float = 0.0) -> bool:
        """Wait before the next try, or return False where there is none.

        Args:
            failed: how many tries failed.
            started: when the first one began, by the monotonic clock.
            asked: the seconds that the server named.
        """
        longest = min(self.longest, self.pause * 2.0 ** (failed - 1))
        pause = max(asked, longest * random.uniform(0.5, 1.0))  # noqa: S311  (no secret)
        if failed >= self.tries or time.monotonic() - started + pause > self.total:
            return False
        self.sleep(pause)
        return True


#: Of a reader: no further try.
ONCE = QdrantRetry(tries=1)
