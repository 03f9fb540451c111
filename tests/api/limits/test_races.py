"""Limiters under races, kills, double settlements and duplicate requests."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import partial

import pytest

from api.limits import schedules
from api.limits.conftest import Open
from api.limits.schedules import CLIENTS, Attempt, Entry, judge, judge_rush, rush, share, spend
from api.limits.test_contract import DAY, HOUR, MIDNIGHT, MINUTE
from chapterverse_api.ext.dynamodb.limiter import DynamoLimiter
from chapterverse_api.limits import MemoryLimiter, RateWindow, Reservation
from fakes import dynamodb_server
from fakes.dynamodb_server import DynamoServer, doubled, sometimes, unanswered

EDGES = {"minute": MIDNIGHT + MINUTE, "hour": MIDNIGHT + HOUR, "day": MIDNIGHT + DAY}
WINDOWS = [RateWindow(10, MINUTE), RateWindow(15, HOUR), RateWindow(22, DAY)]


def test_memory_is_never_overspent() -> None:
    limiter = MemoryLimiter()
    for seed in share(24):
        spend([limiter], f"docs#{seed}", seed, MIDNIGHT, turns=8)


def test_a_file_is_never_overspent(sqlite: Open) -> None:
    limiters = [sqlite() for _ in range(4)]
    for seed in share(50):
        spend(limiters, f"docs#{seed}", seed, MIDNIGHT)


def test_a_table_is_never_overspent_even_where_answers_are_lost(dynamodb: DynamoServer) -> None:
    limiter = DynamoLimiter(dynamodb_server.patient(), dynamodb.table())
    for seed in share(20):
        draw = random.Random(seed)
        # So rarely that four in a row, after which the limiter gives up, come once in a few hundred thousand requests.
        dynamodb.chance = sometimes(draw, draw.choice([0, 0.04]), unanswered, doubled)
        spend([limiter], f"docs#{seed}", seed, MIDNIGHT, turns=1)


@pytest.mark.parametrize("edge", EDGES)
def test_no_more_are_admitted_at_an_edge_than_before_and_after_it(place: Open, edge: str) -> None:
    limiters = [place() for _ in range(2)]
    attempts = rush(limiters, "a", WINDOWS, EDGES[edge], seed=1)
    judge_rush(WINDOWS, attempts)
    assert sum(attempt.wait is None for attempt in attempts) == {"minute": 15, "hour": 20, "day": 20}[edge]


def test_no_more_are_admitted_where_answers_are_lost(dynamodb: DynamoServer) -> None:
    limiter = DynamoLimiter(dynamodb_server.patient(), dynamodb.table())
    dynamodb.chance = sometimes(random.Random(2), 0.2, unanswered, doubled)
    attempts = rush([limiter], "a", WINDOWS, EDGES["hour"], seed=2)
    judge_rush(WINDOWS, attempts, exact=False)
    assert sum(attempt.wait is None for attempt in attempts) > 5


def test_each_token_is_new_to_one_of_many(place: Open) -> None:
    limiters = [place() for _ in range(2)]

    def takes(i: int) -> list[Entry]:
        seen = [limiters[i % 2].use_token(f"t{n}", MIDNIGHT + 300, MIDNIGHT) for n in range(3)]
        return [Entry(0, 0, n) for n, new in enumerate(seen) if new]

    found = schedules.race([partial(takes, i) for i in range(CLIENTS)])
    assert sorted(entry.paid for entry in found) == [0, 1, 2]


class Naive:
    """A faulty limiter that reads, waits, and writes; the checks must detect it."""

    def __init__(self) -> None:
        self.gone = 0
        self.counts: dict[int, int] = {}

    def admit(self, client: str, windows: Sequence[RateWindow], now: float) -> float | None:
        start = windows[0].start(now)
        count = self.counts.get(start, 0)
        time.sleep(0.001)
        if count >= windows[0].limit:
            return windows[0].seconds_left(now)
        self.counts[start] = count + 1
        return None

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        before = self.gone
        time.sleep(0.001)
        if before + micros > cap:
            return None
        self.gone = before + micros
        return Reservation("", account, micros, before)

    def settle(self, reservation: Reservation, micros: int) -> None:
        self.gone -= reservation.micros - micros

    def spent_micros(self, account: str) -> int:
        return self.gone

    def use_token(self, token: str, until: float, now: float) -> bool:
        return True


def test_the_judges_notice_a_limiter_that_reads_before_it_writes() -> None:
    for seed in range(3):
        with pytest.raises(AssertionError, match="ledger"):
            spend([Naive()], "docs", seed, MIDNIGHT)
        with pytest.raises(AssertionError, match="too many"):
            judge_rush(WINDOWS[:1], rush([Naive()], "a", WINDOWS[:1], EDGES["hour"], seed))


def test_the_judges_notice_money_that_is_not_there() -> None:
    settled = Entry(worst=60, before=0, paid=50, settled=50)
    killed = Entry(worst=40, before=60, paid=0)
    judge(100, [settled, killed], 90)
    for entries, spent in (([settled, killed], 91), ([settled, killed], 50), ([settled], 49), ([settled] * 3, 150)):
        with pytest.raises(AssertionError):
            judge(100, entries, spent)
    with pytest.raises(AssertionError, match="not there"):
        judge(100, [Entry(worst=41, before=60, paid=1, settled=1)], 1)
    with pytest.raises(AssertionError, match="room left"):
        judge_rush([RateWindow(2, MINUTE)], [Attempt(MIDNIGHT, None), Attempt(MIDNIGHT, 60.0)])
