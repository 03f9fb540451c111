"""The day's budget for models, and the share of one turn.

The most that a turn can cost is set aside in one atomic step before anything is paid for, and replaced by what it did
cost afterwards. So no race overspends, and a process that is killed in between has counted too much.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from threading import Lock
from typing import Literal

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.budget.prices import Price
from chapterverse_api.circuit_breaker import CircuitBreaker, CircuitOpen
from chapterverse_api.limits.factory import open_limiter
from chapterverse_api.limits.protocols import Limiter, LimiterFault, Reservation
from chapterverse_api.observability import log, metrics

#: full: all models. economy: no reranker, no paid checker, and the cheaper generator. free: nothing that is paid for.
BudgetLevel = Literal["full", "economy", "free"]

#: Share of the day's budget from which on it is spent sparingly.
ECONOMY_SHARE = 0.8

#: A cap in microdollars that no spending reaches.
_NO_CAP = 2**62

#: Seconds without requests to a limiter after one failure. Otherwise each answer would wait for it.
_RESET_SECONDS = 10.0

_SPENT = "The day's budget for models is used up, so none was asked."
_UNCOUNTED = "What models cost can't be counted right now, so none was asked."


@dataclass(slots=True)
class TurnBudget:
    """The models that one turn may use, and their cost so far. Safe to add to from several threads.

    Attributes:
        level: see `BudgetLevel`.
        reason: a sentence for the reader; None if the turn may use all models.
        share: the share of the day's budget that was gone when the turn began, 0 to 1; None without a budget.
        micros: the cost so far, in microdollars.
        input_tokens: about how many tokens were sent to generators.
        output_tokens: about how many tokens they wrote.
    """

    level: BudgetLevel = "full"
    reason: str | None = None
    share: float | None = None
    micros: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def usd(self) -> float:
        """The cost so far, in US dollars."""
        return round(self.micros / 1_000_000, 6)

    def add(self, price: Price, *, input_tokens: float = 0.0, output_tokens: float = 0.0, searches: int = 0) -> None:
        """Add the cost of a model's tokens, or of the searches of a reranker."""
        with self._lock:
            self.micros += price.cost(input_tokens=input_tokens, output_tokens=output_tokens, searches=searches)

    def add_generated(self, price: Price, input_tokens: float, output_tokens: float) -> None:
        """Add a generator's tokens and their cost."""
        self.add(price, input_tokens=input_tokens, output_tokens=output_tokens)
        with self._lock:
            self.input_tokens += math.ceil(input_tokens)
            self.output_tokens += math.ceil(output_tokens)


@dataclass(frozen=True, slots=True)
class CostCeiling:
    """The most that a turn can cost at each level that costs anything, in microdollars."""

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
        self._circuit = CircuitBreaker("limiter", failures=(LimiterFault,), threshold=1, reset_seconds=_RESET_SECONDS)
        self.level: BudgetLevel = "full"

    @classmethod
    def from_settings(cls, settings: Settings) -> DailyBudget:
        """Return the budget that the settings name; nothing is read or sent yet.

        Raises:
            ConfigurationError: the amount is no number, or there is no such limiter.
        """
        return cls(open_limiter(settings), _parse_cap(settings.daily_budget_usd), settings.site)

    @contextmanager
    def reserving(self, ceiling: CostCeiling) -> Iterator[TurnBudget]:
        """Reserve the most that a turn can cost, yield its budget, and settle its actual cost."""
        reservation, turn_budget = None, TurnBudget()
        if self._cap is not None and ceiling.full > 0:
            reservation, turn_budget = self._reserve(ceiling, self._cap)
            self.level = turn_budget.level
        try:
            yield turn_budget
        finally:
            if reservation:
                self._settle(reservation, turn_budget.micros)
            share = None if turn_budget.share is None else 100 * turn_budget.share
            metrics.measure_cost(turn_budget.usd, turn_budget.input_tokens, turn_budget.output_tokens, share)

    def _reserve(self, ceiling: CostCeiling, cap: int) -> tuple[Reservation | None, TurnBudget]:
        now = self._clock()
        account = f"{self._site}#{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
        try:
            # A budget below the price of the best models may still be enough for the cheaper ones.
            for micros in sorted({math.ceil(ceiling.full), math.ceil(ceiling.economy)} if cap else (), reverse=True):
                with self._circuit.calling():
                    reservation = self._limiter.reserve(account, micros, cap, now)
                if reservation:
                    is_low = reservation.spent >= ECONOMY_SHARE * cap or micros < ceiling.full
                    share = (reservation.spent + micros) / cap
                    return reservation, TurnBudget("economy" if is_low else "full", share=share)
        except CircuitOpen:
            return None, TurnBudget("free", _UNCOUNTED)
        except LimiterFault as error:
            _log_fault(error)
            return None, TurnBudget("free", _UNCOUNTED)
        return None, TurnBudget("free", _SPENT, share=1.0)

    def _settle(self, reservation: Reservation, micros: float) -> None:
        spent, max_micros = math.ceil(micros), reservation.micros
        # A reservation that is not settled counts as spent in full: too much, and never too little. So this is tried
        # even while the circuit is open.
        try:
            self._limiter.settle(reservation, min(spent, max_micros))
            # A model that did more than its limits is counted too, even above the cap.
            if excess := max(0, spent - max_micros):
                more = self._limiter.reserve(reservation.account, excess, _NO_CAP, self._clock())
                if more:
                    self._limiter.settle(more, more.micros)
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
