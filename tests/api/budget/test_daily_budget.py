"""The day's budget with the limiter of one process; `tests/api/limits` tests the others under races."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.budget.daily_budget import CostCeiling, DailyBudget, TurnBudget
from chapterverse_api.budget.prices import Price
from chapterverse_api.limits.memory import MemoryLimiter
from chapterverse_api.limits.protocols import LimiterFault, RateWindow, Reservation
from fakes.clocks import Clock

NOON = 1_800_000_000.0
ACCOUNT = "docs#2027-01-15"
WORST = CostCeiling(full=100, economy=10)
TOKEN = Price(input_token=1)


class Broken:
    """A limiter whose database is gone; `works` brings it back."""

    def __init__(self) -> None:
        self.inner = MemoryLimiter()
        self.works = False
        self.asked = 0

    def admit(self, client: str, windows: Sequence[RateWindow], now: float) -> float | None:
        raise NotImplementedError

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        self.asked += 1
        if not self.works:
            raise LimiterFault("The limiter can't be reached: look at it.")
        return self.inner.reserve(account, micros, cap, now)

    def settle(self, reservation: Reservation, micros: int) -> None:
        if not self.works:
            raise LimiterFault("The limiter can't be reached: look at it.")
        self.inner.settle(reservation, micros)

    def spent_micros(self, account: str) -> int:
        return self.inner.spent_micros(account)

    def use_token(self, token: str, until: float, now: float) -> bool:
        raise NotImplementedError


def spend(budget: DailyBudget, micros: float, worst: CostCeiling = WORST) -> TurnBudget:
    """Go through one turn that costs so much, if anything may be paid."""
    with budget.reserving(worst) as turn_budget:
        if turn_budget.level != "free":
            turn_budget.add(TOKEN, input_tokens=micros)
    return turn_budget


def test_what_a_turn_did_cost_is_what_counts() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    with budget.reserving(WORST) as turn_budget:
        assert limiter.spent_micros(ACCOUNT) == 100
        turn_budget.add(TOKEN, input_tokens=7.2)
    assert limiter.spent_micros(ACCOUNT) == 8
    assert (turn_budget.level, turn_budget.reason, turn_budget.share) == ("full", None, 0.1)


def test_from_four_fifths_on_it_is_economical_and_then_free() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    levels = [spend(budget, 100 if at < 8 else 10).level for at in range(40)]
    # The dear answers take 800; then twenty cheap ones are all that there is room for.
    assert levels == ["full"] * 8 + ["economy"] * 20 + ["free"] * 12
    assert limiter.spent_micros(ACCOUNT) == 1000
    assert budget.level == "free"


def test_with_less_left_than_a_dear_answer_a_cheap_one_is_had() -> None:
    budget = DailyBudget(MemoryLimiter(), 50, "docs", clock=Clock(NOON))
    assert spend(budget, 10).level == "economy"


def test_a_turn_that_failed_settles_what_it_had_cost() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))

    def failing() -> None:
        with budget.reserving(WORST) as turn_budget:
            turn_budget.add(TOKEN, input_tokens=30)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert limiter.spent_micros(ACCOUNT) == 30


def test_a_turn_that_cost_more_than_its_worst_is_counted_whole() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    spend(budget, 130)
    assert limiter.spent_micros(ACCOUNT) == 130


def test_the_next_day_begins_anew_at_midnight_utc() -> None:
    clock = Clock(NOON)
    budget = DailyBudget(MemoryLimiter(), 100, "docs", clock=clock)
    assert [spend(budget, 100).level for _ in range(2)] == ["full", "free"]
    clock.now += 86400
    assert spend(budget, 100).level == "full"


def test_sites_that_share_a_limiter_have_budgets_of_their_own() -> None:
    limiter = MemoryLimiter()
    assert [spend(DailyBudget(limiter, 100, site, clock=Clock(NOON)), 100).level for site in "aab"] == [
        "full",
        "free",
        "full",
    ]


@pytest.mark.parametrize("cap", [None, 0, 5])
def test_what_costs_nothing_asks_no_limiter(cap: int | None) -> None:
    broken = Broken()
    assert spend(DailyBudget(broken, cap), 0, CostCeiling(0, 0)).level == "full"
    assert broken.asked == 0


def test_a_budget_of_nothing_pays_for_nothing() -> None:
    turn_budget = spend(DailyBudget(MemoryLimiter(), 0), 0)
    assert (turn_budget.level, turn_budget.reason) == (
        "free",
        "The day's budget for models is used up, so none was asked.",
    )


def test_without_a_limiter_nothing_is_paid_for(caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    budget = DailyBudget(broken, 1000)
    with caplog.at_level(logging.ERROR, logger="chapterverse"):
        allowances = [spend(budget, 0) for _ in range(5)]
    assert {(a.level, a.reason) for a in allowances} == {
        ("free", "What models cost can't be counted right now, so none was asked.")
    }
    # It is left alone after the first time, and told once.
    assert broken.asked == 1
    assert [record.getMessage().count("limiter_unavailable") for record in caplog.records] == [1]


def test_a_limiter_that_fails_at_the_end_has_counted_the_worst(caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    broken.works = True
    budget = DailyBudget(broken, 1000, "docs", clock=Clock(NOON))
    with caplog.at_level(logging.ERROR, logger="chapterverse"), budget.reserving(WORST) as turn_budget:
        turn_budget.add(TOKEN, input_tokens=5)
        broken.works = False
    assert broken.spent_micros(ACCOUNT) == 100
    assert "limiter_unavailable" in caplog.text


@pytest.mark.parametrize(("said", "cap"), [("5", 5_000_000), ("0.5", 500_000), (" 0 ", 0), ("1e1", 10_000_000)])
def test_an_amount_is_in_dollars(said: str, cap: int) -> None:
    assert DailyBudget.from_settings(Settings(daily_budget_usd=said))._cap == cap


@pytest.mark.parametrize("said", ["", "five", "-1", "nan", "inf", "$5", "2000000"])
def test_an_amount_that_is_none_is_told(said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"CHAPTERVERSE_DAILY_BUDGET_USD is no amount: set it to US dollars"):
        DailyBudget.from_settings(Settings(daily_budget_usd=said))


def test_a_budget_can_be_turned_off() -> None:
    with DailyBudget.from_settings(Settings(daily_budget_usd="Off")).reserving(WORST) as turn_budget:
        assert (turn_budget.level, turn_budget.share) == ("full", None)
