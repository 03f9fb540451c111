"""The counters that rate limits and the day's budget share between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chapterverse.errors import ChapterVerseError

#: Seconds for which an account is kept after the last reservation. A clock that is days ahead for a moment must not end
#: today's account, or nothing would be spent when it is set right. To keep an account for a month costs 100 bytes.
ACCOUNT_SECONDS = 32 * 24 * 60 * 60


class LimiterFault(ChapterVerseError):
    """The counters can't be reached, so only answers without a cost may be given."""


@dataclass(frozen=True, slots=True)
class RateWindow:
    """A fixed window: at most `limit` requests in each stretch of `seconds`, counted from the epoch.

    Attributes:
        limit: the most requests, at least 1.
        seconds: the length, a divisor of a day, so that every window lies within one.
    """

    limit: int
    seconds: int

    def start(self, now: float) -> int:
        """Return the start of the window that holds `now`, in seconds since the epoch."""
        return int(now // self.seconds) * self.seconds

    def seconds_left(self, now: float) -> float:
        """Return the seconds until that window ends, at most its length, even if the clock is wrong."""
        return self.start(now) + self.seconds - now


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money that is set aside for one request.

    Attributes:
        id: the id by which it is settled.
        account: the account from which money was reserved.
        micros: the reserved sum, in microdollars.
        spent: the sum that was spent or reserved of the account before, in microdollars.
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
            windows: windows of different lengths.
            now: seconds since the epoch.

        Returns:
            None if the request is admitted, else the seconds until the last of the full windows ends.
        """
        ...

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        """Set money aside; return None if more than `cap` would be spent and set aside of the account.

        Args:
            account: a site and a day, up to 1,000 bytes. It is forgotten `ACCOUNT_SECONDS` after the last `now`.
            micros: microdollars, 0 or more.
            cap: microdollars.
            now: seconds since the epoch.
        """
        ...

    def settle(self, reservation: Reservation, micros: int) -> None:
        """Replace the reserved sum by the actual cost, which is no more. A second call changes nothing."""
        ...

    def spent_micros(self, account: str) -> int:
        """Return the sum that was spent and reserved of an account, in microdollars."""
        ...

    def use_token(self, token: str, until: float, now: float) -> bool:
        """Return whether this token was never seen, and remember it.

        Args:
            token: up to 1,000 bytes.
            until: the time until which it is remembered, in seconds since the epoch. The caller rejects later tokens.
            now: seconds since the epoch.
        """
        ...
