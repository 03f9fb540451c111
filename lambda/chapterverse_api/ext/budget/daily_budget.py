"""The day's budget for models, and the share of one turn.

No request is sent before the most that it can cost is reserved, in one atomic step. A turn starts with a reservation
for its usual requests; a request that needs more adds what is lacking. At the end the actual cost replaces the whole; a
request that is still running counts with its most, and none begins any more. So no race overspends, and a process that
is killed in between has counted too much.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from threading import Lock

from chapterverse.errors import BudgetSpent, ConfigurationError, ProviderError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.answer.resources import BudgetLevel, Spending
from chapterverse_api.ext.budget.circuit_breaker import CircuitBreaker, CircuitOpen
from chapterverse_api.ext.budget.prices import Price, Use
from chapterverse_api.limits import Limiter, LimiterFault, Reservation

#: Share of the day's budget from which on it is spent sparingly.
_ECONOMY_SHARE = 0.8

#: A cap in microdollars that no spending reaches.
_NO_CAP = 2**62

#: Seconds without requests to a limiter after one failure. Otherwise each answer would wait for it.
_LIMITER_RESET_SECONDS = 10.0

_SPENT = "The day's budget for models is used up, so none was asked."
_UNCOUNTED = "What models cost can't be counted right now, so none was asked."
_SPENT_SINCE = "The day's budget for models is used up, so no more of them were asked."
_UNCOUNTED_SINCE = "What models cost can't be counted any more, so no more of them were asked."
_CLOSED = "The answer was given already, so no more models were asked."


@dataclass(slots=True)
class Bill:
    """What one request is charged: the most that it can cost, until its answer begins and tells less."""

    use: Use


@dataclass(slots=True)
class TurnBudget(Spending):
    """What is reserved for the models of one turn, and their cost so far. Safe for several threads.

    Attributes:
        share: the share of the day's budget that was gone when the turn began, 0 to 1; None without a budget.
        reserve: reserves so many microdollars more, or raises `BudgetSpent`; None without a limit.
        reservations: those of this turn.
        input_tokens: about how many tokens were sent to generators.
        output_tokens: about how many tokens they wrote.
    """

    share: float | None = None
    reserve: Callable[[int], Reservation] | None = None
    reservations: list[Reservation] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0
    _open: float = 0.0
    _is_closed: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @contextmanager
    def paying(self, price: Price, most: Use, *, writes: bool = False) -> Iterator[Bill]:
        """Run a block that sends one request and may lower its bill. Then charge it, unless it is known to be free.

        Args:
            writes: whether the model is a generator, whose tokens are counted.

        Raises:
            BudgetSpent: the most that it can cost can't be reserved, and the block did not run.
        """
        self._open_bill(price.cost(most))
        bill = Bill(most)
        try:
            yield bill
        except ProviderError as error:
            # An answer that has begun is billed in any case.
            if error.unbilled and bill.use is most:
                bill.use = Use()
            raise
        finally:
            self._close_bill(price, most, bill.use, writes)

    def _open_bill(self, most: float) -> None:
        with self._lock:
            if self._is_closed:
                raise BudgetSpent(_CLOSED)
            reserved = sum(reservation.micros for reservation in self.reservations)
            lacking = math.ceil(self.micros + self._open + most) - reserved
            if self.reserve and most and lacking > 0:
                try:
                    self.reservations.append(self.reserve(lacking))
                except BudgetSpent as error:
                    self.reason = str(error)
                    raise
            self._open += most

    def close(self) -> float:
        """Allow no request any more, and return the cost: of a request that is still running the most."""
        with self._lock:
            self._is_closed = True
            return self.micros + self._open

    def _close_bill(self, price: Price, most: Use, use: Use, writes: bool) -> None:
        with self._lock:
            self._open -= price.cost(most)
            self.micros += price.cost(use)
            if writes:
                self.input_tokens += math.ceil(use.input_tokens)
                self.output_tokens += math.ceil(use.output_tokens)


@dataclass(frozen=True, slots=True)
class UsualCost:
    """The most that the usual requests of a turn can cost at each level that costs anything, in microdollars."""

    full: float
    economy: float


class DailyBudget:
    """The most that a site may spend on models in a day (UTC). Safe to use from several threads.

    Args:
        cap: microdollars a day; None for no limit.
        site: the site whose budget it is. Sites that share a limiter don't share a budget.
    """

    def __init__(
        self, limiter: Limiter, cap: int | None, site: str = "", *, clock: Callable[[], float] = time.time
    ) -> None:
        self._limiter = limiter
        self._cap = cap
        self._site = site or "default"
        self._clock = clock
        self._circuit = CircuitBreaker(
            "limiter", failures=(LimiterFault,), threshold=1, reset_seconds=_LIMITER_RESET_SECONDS
        )
        self.level: BudgetLevel = "full"

    @classmethod
    def from_settings(cls, settings: Settings) -> DailyBudget:
        """Return the budget that the settings name; nothing is read or sent yet.

        Raises:
            ConfigurationError: the amount is no number, or there is no such limiter.
        """
        return cls(open_offer("limiter", settings), _parse_cap(settings.daily_budget_usd), settings.site)

    @contextmanager
    def reserving(self, usual: UsualCost) -> Iterator[TurnBudget]:
        """Reserve the most that a turn usually costs, yield its budget, and settle its actual cost."""
        turn_budget = TurnBudget() if self._cap is None else self._begin(usual, self._cap)
        try:
            yield turn_budget
        finally:
            cost = turn_budget.close()
            if turn_budget.reservations:
                self._settle(turn_budget.reservations, math.ceil(cost))
            share = {} if turn_budget.share is None else {"BudgetShare": round(100 * turn_budget.share, 2)}
            tokens = {"InputTokens": turn_budget.input_tokens, "OutputTokens": turn_budget.output_tokens}
            log.measure(CostUsd=turn_budget.usd, **tokens, **share)

    def _begin(self, usual: UsualCost, cap: int) -> TurnBudget:
        account = f"{self._site}#{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

        def reserve_more(micros: int) -> Reservation:
            if more := self._reserve(account, micros, cap):
                return more
            raise BudgetSpent(_SPENT_SINCE)

        turn_budget = TurnBudget()
        if usual.full > 0:
            turn_budget = self._choose_level(account, usual, cap)
            self.level = turn_budget.level
        turn_budget.reserve = reserve_more
        return turn_budget

    def _choose_level(self, account: str, usual: UsualCost, cap: int) -> TurnBudget:
        try:
            # A budget below the price of the best models may still be enough for the cheaper ones.
            for micros in sorted({math.ceil(usual.full), math.ceil(usual.economy)} if cap else (), reverse=True):
                if reservation := self._reserve(account, micros, cap):
                    is_low = reservation.spent >= _ECONOMY_SHARE * cap or micros < usual.full
                    share = (reservation.spent + micros) / cap
                    level: BudgetLevel = "economy" if is_low else "full"
                    return TurnBudget(level, share=share, reservations=[reservation])
        except BudgetSpent:
            return TurnBudget("free", _UNCOUNTED)
        return TurnBudget("free", _SPENT, share=1.0)

    def _reserve(self, account: str, micros: int, cap: int) -> Reservation | None:
        """Reserve a sum; None if the day has less left.

        Raises:
            BudgetSpent: the limiter can't be reached.
        """
        try:
            with self._circuit.calling():
                return self._limiter.reserve(account, micros, cap, self._clock())
        except (LimiterFault, CircuitOpen) as error:
            if isinstance(error, LimiterFault):
                _log_fault(error)
            raise BudgetSpent(_UNCOUNTED_SINCE) from error

    def _settle(self, reservations: Sequence[Reservation], spent: int) -> None:
        # A reservation that is not settled counts as spent in full: too much, and never too little. So this is tried
        # even while the circuit is open.
        try:
            for reservation in reservations:
                self._limiter.settle(reservation, min(spent, reservation.micros))
                spent -= min(spent, reservation.micros)
            # A model that did more than its limits is counted too, even above the cap.
            if spent:
                self._limiter.reserve(reservations[0].account, spent, _NO_CAP, self._clock())
        except LimiterFault as error:
            self._circuit.count_failure(error)
            _log_fault(error)


def _log_fault(error: LimiterFault) -> None:
    log.event("error", code="limiter_unavailable", message=str(error))


def _parse_cap(text: str) -> int | None:
    """Return microdollars; None for "off"."""
    if text.strip().lower() == "off":
        return None
    with suppress(InvalidOperation, OverflowError, ValueError):
        amount = Decimal(text.strip())
        if 0 <= amount <= 1_000_000:
            return int(amount * 1_000_000)
    raise ConfigurationError(
        "CHAPTERVERSE_DAILY_BUDGET_USD is no amount: set it to US dollars a day, such as 5 or 0.50, or to off."
    )
