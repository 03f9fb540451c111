"""The day's budget with the limiter of one process; `tests/api/limits` tests the others under races."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from threading import Barrier, Event

import pytest

from chapterverse.errors import BudgetSpent, ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.ext.budget.daily_budget import DailyBudget, TurnBudget, UsualCost
from chapterverse_api.ext.budget.prices import Price, Use
from chapterverse_api.limits import LimiterFault, MemoryLimiter, RateWindow, Reservation
from fakes.clocks import Clock

NOON = 1_800_000_000.0
ACCOUNT = "docs#2027-01-15"
USUAL = UsualCost(full=100, economy=10)
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


def pay(turn_budget: TurnBudget, micros: float, most: float | None = None) -> None:
    """Send one request that costs so much, and at most `most`."""
    with turn_budget.paying(TOKEN, Use(micros if most is None else most)) as bill:
        bill.use = Use(micros)


def spend(budget: DailyBudget, micros: float, usual: UsualCost = USUAL) -> TurnBudget:
    """Go through one turn that costs so much, if anything may be paid."""
    with budget.reserving(usual) as turn_budget:
        if turn_budget.level != "free":
            pay(turn_budget, micros)
    return turn_budget


def test_what_a_turn_did_cost_is_what_counts() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    with budget.reserving(USUAL) as turn_budget:
        assert limiter.spent_micros(ACCOUNT) == 100
        pay(turn_budget, 7.2)
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
        with budget.reserving(USUAL) as turn_budget:
            pay(turn_budget, 30)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert limiter.spent_micros(ACCOUNT) == 30


def test_a_request_that_cost_more_than_its_most_is_counted_whole() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 110, "docs", clock=Clock(NOON))
    with budget.reserving(USUAL) as turn_budget:
        pay(turn_budget, 130, most=100)
    assert limiter.spent_micros(ACCOUNT) == 130


def test_a_request_reserves_what_is_lacking_before_it_is_sent() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    with budget.reserving(USUAL) as turn_budget:
        # What the first request left over is enough for the second, and not for the third.
        for micros, most, reserved in ((20, 90, 100), (30, 80, 100), (40, 140, 190)):
            with turn_budget.paying(TOKEN, Use(most)) as bill:
                assert limiter.spent_micros(ACCOUNT) == reserved
                bill.use = Use(micros)
        # Requests that are sent at once need room for all of them.
        with turn_budget.paying(TOKEN, Use(60)), turn_budget.paying(TOKEN, Use(60)):
            assert limiter.spent_micros(ACCOUNT) == 210
    assert limiter.spent_micros(ACCOUNT) == 90 + 120


def test_a_request_that_the_day_has_no_room_for_is_not_sent() -> None:
    limiter, sent = MemoryLimiter(), []
    budget = DailyBudget(limiter, 150, "docs", clock=Clock(NOON))
    with budget.reserving(USUAL) as turn_budget:
        pay(turn_budget, 90)
        with (
            pytest.raises(BudgetSpent, match=r"is used up, so no more of them were asked\."),
            turn_budget.paying(TOKEN, Use(61)),
        ):
            sent.append(1)
        assert (turn_budget.level, turn_budget.reason) == (
            "full",
            "The day's budget for models is used up, so no more of them were asked.",
        )
        # A smaller one has room.
        pay(turn_budget, 60)
    assert (sent, limiter.spent_micros(ACCOUNT)) == ([], 150)


def test_what_a_turn_adds_is_of_the_day_that_it_began_in() -> None:
    limiter, clock = MemoryLimiter(), Clock(NOON)
    budget = DailyBudget(limiter, 1000, "docs", clock=clock)
    with budget.reserving(USUAL) as turn_budget:
        clock.now += 86400
        pay(turn_budget, 300)
    assert limiter.spent_micros(ACCOUNT) == 300
    assert limiter.spent_micros("docs#2027-01-16") == 0


@pytest.mark.parametrize("seed", range(20))
def test_turns_that_race_for_their_rounds_never_spend_more_than_there_is(seed: int) -> None:
    limiter, cap = MemoryLimiter(), 2000
    budget = DailyBudget(limiter, cap, "docs", clock=Clock(NOON))
    gate, paid, denied = Barrier(16), list[int](), list[int]()

    def turn(draw: Random) -> None:
        gate.wait()
        with budget.reserving(USUAL) as turn_budget:
            for most in draw.choices(range(1, 150), k=4 if turn_budget.level != "free" else 0):
                try:
                    with turn_budget.paying(TOKEN, Use(most)) as bill:
                        assert sum(paid) + most <= limiter.spent_micros(ACCOUNT) <= cap
                        bill.use = Use(draw.randint(0, most))
                        time.sleep(0)
                    paid.append(int(bill.use.input_tokens))
                except BudgetSpent:
                    denied.append(most)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(turn, (Random(100 * seed + number) for number in range(16))))
    assert sum(paid) == limiter.spent_micros(ACCOUNT)
    assert denied


def test_a_request_that_outlives_its_turn_counts_with_its_most_and_none_begins_after_it() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    begun, ended, paid = Event(), Event(), list[int]()

    def ask_late(turn_budget: TurnBudget) -> None:
        with turn_budget.paying(TOKEN, Use(500)) as bill:
            begun.set()
            assert ended.wait(10)
            paid.append(int(bill.use.input_tokens))
        with pytest.raises(BudgetSpent), turn_budget.paying(TOKEN, Use(500)):
            paid.append(500)

    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            begun.clear()
            ended.clear()
            with budget.reserving(USUAL) as turn_budget:
                late = pool.submit(ask_late, turn_budget) if turn_budget.level != "free" else None
                assert late is None or begun.wait(10) or late.done()
            ended.set()
            with suppress(BudgetSpent):
                assert late is None or late.result() is None
    assert sum(paid) == limiter.spent_micros(ACCOUNT) == 1000


def test_a_turn_that_is_lost_between_two_requests_counts_all_that_it_reserved() -> None:
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, 1000, "docs", clock=Clock(NOON))
    # Never left, as by a process that is killed.
    lost = budget.reserving(USUAL)
    turn_budget = lost.__enter__()
    pay(turn_budget, 90)
    pay(turn_budget, 70)
    assert limiter.spent_micros(ACCOUNT) == 160
    assert spend(budget, 100).level == "full"
    assert limiter.spent_micros(ACCOUNT) == 260


def test_the_next_day_begins_anew_at_midnight_utc() -> None:
    clock = Clock(NOON)
    budget = DailyBudget(MemoryLimiter(), 100, "docs", clock=clock)
    assert [spend(budget, 100).level for _ in range(2)] == ["full", "free"]
    clock.now += 86400
    assert spend(budget, 100).level == "full"


def test_a_request_that_costs_nothing_is_sent_though_nothing_is_left() -> None:
    limiter = MemoryLimiter()
    with DailyBudget(limiter, 110, "docs", clock=Clock(NOON)).reserving(USUAL) as turn_budget:
        pay(turn_budget, 130, most=100)
        pay(turn_budget, 0)
    assert limiter.spent_micros(ACCOUNT) == 130


def test_only_what_generators_read_and_write_is_counted_in_tokens() -> None:
    turn_budget = TurnBudget()
    for writes in (False, True, True):
        with turn_budget.paying(Price(1, 2), Use(3.5, 4.5), writes=writes):
            pass
    assert (turn_budget.input_tokens, turn_budget.output_tokens, turn_budget.micros) == (8, 10, 37.5)


def test_costs_are_shown_in_dollars_to_the_microdollar() -> None:
    turn_budget = TurnBudget()
    pay(turn_budget, 1_234_567.8)
    assert turn_budget.usd == 1.234568


def test_a_turn_is_measured_with_its_cost_and_the_percent_of_the_day() -> None:
    budget = DailyBudget(MemoryLimiter(), 1000, "docs", clock=Clock(NOON))
    with log.request(None) as measured:
        spend(budget, 50)
    assert (measured["CostUsd"], measured["BudgetShare"]) == (0.00005, 10.0)


def test_a_site_without_a_name_has_an_account_too() -> None:
    limiter = MemoryLimiter()
    spend(DailyBudget(limiter, 100, clock=Clock(NOON)), 100)
    assert limiter.spent_micros("default#2027-01-15") == 100


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
    assert spend(DailyBudget(broken, cap), 0, UsualCost(0, 0)).level == "full"
    assert broken.asked == 0


def test_a_turn_that_should_cost_nothing_still_reserves_what_it_asks_for() -> None:
    with DailyBudget(MemoryLimiter(), 5).reserving(UsualCost(0, 0)) as turn_budget:
        pay(turn_budget, 5)
        with pytest.raises(BudgetSpent):
            pay(turn_budget, 1)


def test_a_budget_of_nothing_pays_for_nothing() -> None:
    turn_budget = spend(DailyBudget(MemoryLimiter(), 0), 0)
    assert turn_budget.share == 1.0
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
    with caplog.at_level(logging.ERROR, logger="chapterverse"), budget.reserving(USUAL) as turn_budget:
        pay(turn_budget, 5)
        broken.works = False
    assert broken.spent_micros(ACCOUNT) == 100
    assert "limiter_unavailable" in caplog.text


def test_a_limiter_that_fails_between_two_requests_ends_the_turn(caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    broken.works = True
    budget = DailyBudget(broken, 1000, "docs", clock=Clock(NOON))
    with caplog.at_level(logging.ERROR, logger="chapterverse"), budget.reserving(USUAL) as turn_budget:
        broken.works = False
        pay(turn_budget, 100)
        with pytest.raises(BudgetSpent, match="can't be counted any more, so no more"):
            pay(turn_budget, 1)
    assert broken.spent_micros(ACCOUNT) == 100
    assert "limiter_unavailable" in caplog.text


@pytest.mark.parametrize(
    ("said", "cap"), [("5", 5_000_000), ("0.5", 500_000), (" 0 ", 0), ("1e1", 10_000_000), ("1e6", 10**12)]
)
def test_an_amount_is_in_dollars(said: str, cap: int) -> None:
    assert DailyBudget.from_settings(Settings(daily_budget_usd=said))._cap == cap


@pytest.mark.parametrize("said", ["", "five", "-1", "nan", "inf", "$5", "1000000.01"])
def test_an_amount_that_is_none_is_told(said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"CHAPTERVERSE_DAILY_BUDGET_USD is no amount: set it to US dollars"):
        DailyBudget.from_settings(Settings(daily_budget_usd=said))


def test_a_budget_can_be_turned_off() -> None:
    with DailyBudget.from_settings(Settings(daily_budget_usd="Off")).reserving(USUAL) as turn_budget:
        assert (turn_budget.level, turn_budget.share) == ("full", None)
        pay(turn_budget, 10**12)
    assert turn_budget.usd == 10**6
