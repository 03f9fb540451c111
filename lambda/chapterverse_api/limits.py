"""Limiters: counters that several processes may share, and those of one process. A setting chooses one by name.

Two things are counted: requests of a client in windows of time, and money of a site in a day. Both are counted before
anything is done for them, in one atomic step each, so that no race admits more than there is room for, and a process
that is killed has counted too much and never too little. Money is whole microdollars: floats don't add up.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from chapterverse.errors import ChapterVerseError

#: Seconds for which an account is kept after the last reservation. A clock that is days ahead for a moment must not end
#: today's account, or nothing would be spent when it is set right. To keep an account for a month costs 100 bytes.
ACCOUNT_SECONDS = 32 * 24 * 60 * 60
#: Clients that are remembered, 650 bytes each. An attacker can have any number of addresses for nothing.
_MAX_CLIENTS = 50_000


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


@dataclass(slots=True)
class _Account:
    ends: float = 0.0
    spent: int = 0
    open: dict[str, int] = field(default_factory=dict)


class MemoryLimiter:
    """Counters of this process, the day's spending included: dictionaries behind one lock.

    Args:
        max_clients: the number of clients that are remembered, the latest ones.
    """

    def __init__(self, max_clients: int = _MAX_CLIENTS) -> None:
        self._max_clients = max_clients
        self._lock = Lock()
        # Requests by the length and the start of their window.
        self._clients: OrderedDict[str, dict[tuple[int, int], int]] = OrderedDict()
        self._accounts: dict[str, _Account] = {}
        self._tokens: dict[str, float] = {}

    @classmethod
    def from_settings(cls, *_: object) -> MemoryLimiter:
        return cls()

    def admit(self, client: str, windows: Sequence[RateWindow], now: float) -> float | None:
        with self._lock:
            counts_before = self._clients.pop(client, {})
            # One window longer than it lasts, for a thread that read its clock a little earlier.
            counts = {(length, start): n for (length, start), n in counts_before.items() if start + 2 * length > now}
            self._clients[client] = counts
            if len(self._clients) > self._max_clients:
                self._clients.popitem(last=False)
            slots = {(window.seconds, window.start(now)): window for window in windows}
            full = [window for slot, window in slots.items() if counts.get(slot, 0) >= window.limit]
            if not full:
                counts.update({slot: counts.get(slot, 0) + 1 for slot in slots})
            return max((window.seconds_left(now) for window in full), default=None)

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        with self._lock:
            if account not in self._accounts:
                self._accounts = {name: state for name, state in self._accounts.items() if state.ends > now}
                self._accounts[account] = _Account()
            state = self._accounts[account]
            state.ends = now + ACCOUNT_SECONDS
            if state.spent + micros > cap:
                return None
            reservation = Reservation(secrets.token_hex(16), account, micros, state.spent)
            state.spent += micros
            state.open[reservation.id] = micros
            return reservation

    def settle(self, reservation: Reservation, micros: int) -> None:
        with self._lock:
            state = self._accounts.get(reservation.account)
            if state and (reserved := state.open.pop(reservation.id, None)) is not None:
                state.spent -= reserved - min(micros, reserved)

    def spent_micros(self, account: str) -> int:
        with self._lock:
            state = self._accounts.get(account)
            return state.spent if state else 0

    def use_token(self, token: str, until: float, now: float) -> bool:
        with self._lock:
            if self._tokens.get(token, now) > now:
                return False
            # Remove up to two old tokens for each new one, so that a flood of them doesn't stay.
            for old in list(self._tokens)[:2]:
                if self._tokens[old] <= now:
                    del self._tokens[old]
            self._tokens[token] = until
            return True
