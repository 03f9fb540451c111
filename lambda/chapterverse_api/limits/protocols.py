"""What rate limits and the day's budget need of shared counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chapterverse.errors import ChapterVerseError

#: Seconds for which an account is kept after the last reservation. A clock that is days ahead for a moment must not end
#: the account of today, for the clock comes back and would find nothing spent; to keep one for a month costs 100 bytes.
ACCOUNT_SECONDS = 32 * 24 * 60 * 60


class LimiterFault(ChapterVerseError):
    """The counters can't be reached: only answers without a cost may be given."""


@dataclass(frozen=True, slots=True)
class RateWindow:
    """So many requests in each stretch of so many seconds, counted from the epoch (a fixed window).

    Attributes:
        limit: at least 1.
        seconds: a divisor of a day, so that every window lies within one.
    """

    limit: int
    seconds: int

    def start(self, now: float) -> int:
        """Return when the window that `now` lies in began, in seconds since the epoch."""
        return int(now // self.seconds) * self.seconds

    def seconds_left(self, now: float) -> float:
        """Return the seconds until it ends, at most its length, even by a wrong clock."""
        return self.start(now) + self.seconds - now


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money that is set aside for one request.

    Attributes:
        id: by which it is settled.
        account: the account from which money was reserved.
        micros: how much.
        spent: the sum that was spent or reserved of the account before it.
    """

    id: str
    account: str
    micros: int
    spent: int


class Limiter(Protocol):
    """Counters in one place. Safe to use from several threads; every method blocks and may raise `LimiterFault`."""

    def admit(self, client: str, windows: Sequence[RateWindow], now: float) -> float | None:
        """Count a request in every window, or in none if one of them is full.

        Args:
            client: a hash, never an address.
            windows: no two of the same length.
            now: seconds since the epoch.

        Returns:
            None where it is admitted, else seconds until the last of the full windows ends.
        """
        ...

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        """Set money aside, unless more than `cap` would be spent and set aside of the account.

        Args:
            account: a site and a day, up to 1,000 bytes; it is forgotten `ACCOUNT_SECONDS` after the last `now`.
            micros: microdollars, from 0.
        """
        ...

    def settle(self, reservation: Reservation, micros: int) -> None:
        """Replace the reserved sum by the actual cost, at most the same; a second call changes nothing."""
        ...

    def spent_micros(self, account: str) -> int:
        """Return the sum that was spent and reserved of an account, in microdollars."""
        ...

    def first(self, token: str, until: float, now: float) -> bool:
        """Return whether this token was never seen; it is remembered up to `until`, in seconds since the epoch.

        Args:
            token: up to 1,000 bytes; the caller itself refuses one that comes after its `until`.
        """
        ...
