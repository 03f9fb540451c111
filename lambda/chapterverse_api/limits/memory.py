"""Counters of this process. Implements `Limiter`."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from chapterverse_api.limits.protocols import ACCOUNT_SECONDS, RateWindow, Reservation

#: Clients that are remembered, 650 bytes each. An attacker can have any number of addresses for nothing.
_MAX_CLIENTS = 50_000


@dataclass(slots=True)
class _Account:
    ends: float = 0.0
    spent: int = 0
    open: dict[str, int] = field(default_factory=dict)


class MemoryLimiter:
    """Dictionaries behind one lock. Their content ends with the process, the day's spending included.

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
