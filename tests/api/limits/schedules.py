"""Random schedules of clients that spend concurrently, and the invariants of each.

A client sets aside the worst case, calls a model, settles what the call cost, and may be killed after any of these.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

from chapterverse_api.limits import Limiter, RateWindow

CLIENTS = 32
#: Schedules of a run, over all limiters: a thousand at night.
SCHEDULES = int(os.environ.get("CHAPTERVERSE_SCHEDULES", "50"))

#: Where a turn ends: settled once, settled again, or killed before the call, or after it.
End = Literal["settled", "twice", "before", "after"]


def share(percent: int) -> range:
    """Return the seeds of a kind of schedule that makes this part of them all."""
    return range(max(1, SCHEDULES * percent // 100))


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a client: the worst case and the cost of its call, in microdollars."""

    worst: int
    cost: int
    end: End


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a turn whose money was set aside.

    Attributes:
        before: what the limiter said was gone before it.
        paid: what the model was paid.
        settled: what counts; None where the client was killed before it settled.
        certain: whether the settling had come to an end, where it had begun.
    """

    worst: int
    before: int
    paid: int
    settled: int | None = None
    certain: bool = True


def plans(draw: random.Random, clients: int = CLIENTS, turns: int = 2, kills: float = 0.2) -> list[list[Turn]]:
    """Return the actions of each client; a killed client does nothing afterwards."""
    ends: list[End] = ["settled", "twice", "before", "after"]
    weights = [1 - kills, 1 - kills, kills, kills]
    made = []
    for _ in range(clients):
        worst = [draw.randint(0, 4000) for _ in range(turns)]
        made.append([Turn(w, draw.randint(0, w), draw.choices(ends, weights)[0]) for w in worst])
    return made


def play(limiter: Limiter, plan: Sequence[Turn], account: str, cap: int, now: float) -> Iterator[Entry]:
    """Act as one client in its own thread; yield the facts of each turn."""
    for turn in plan:
        reserved = limiter.reserve(account, turn.worst, cap, now)
        if reserved is None:
            continue
        if turn.end in ("before", "after"):
            yield Entry(turn.worst, reserved.spent, turn.cost if turn.end == "after" else 0)
            return
        for _ in range(2 if turn.end == "twice" else 1):
            limiter.settle(reserved, turn.cost)
        yield Entry(turn.worst, reserved.spent, turn.cost, settled=turn.cost)


def race(jobs: Sequence[Callable[[], Iterable[Entry]]]) -> list[Entry]:
    """Run every job in its own thread, all starting at once."""
    gate = threading.Barrier(len(jobs))

    def run(job: Callable[[], Iterable[Entry]]) -> list[Entry]:
        gate.wait()
        return list(job())

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [entry for entries in pool.map(run, jobs) for entry in entries]


def judge(cap: int, entries: Sequence[Entry], spent: int) -> None:
    """Fail unless the ledger is exact for all that was settled, whole for all that was not, and within the cap."""
    least = sum(e.worst if e.settled is None else e.settled for e in entries)
    most = sum(e.settled if e.settled is not None and e.certain else e.worst for e in entries)
    assert least <= spent <= most, f"the ledger says {spent}, and should say {least} to {most}"
    assert sum(e.paid for e in entries) <= spent <= cap, f"{spent} of {cap} were spent"
    assert all(e.before + e.worst <= cap for e in entries), "money was set aside that was not there"


def spend(limiters: Sequence[Limiter], account: str, seed: int, now: float, *, turns: int = 2) -> None:
    """Run one schedule and judge it; the limiters share the same counters."""
    draw = random.Random(seed)
    cap = draw.randint(10_000, 80_000)
    chosen = plans(draw, turns=turns)
    jobs = [
        partial(play, limiter, plan, account, cap, now)
        for limiter, plan in zip(itertools.cycle(limiters), chosen, strict=False)
    ]
    judge(cap, race(jobs), limiters[0].spent_micros(account))
    # What is left is there to the last microdollar, and nothing beyond it.
    left = cap - limiters[0].spent_micros(account)
    assert limiters[0].reserve(account, left, cap, now)
    assert limiters[0].reserve(account, 1, cap, now) is None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request: its time by its process's clock, and the wait that it was given."""

    now: float
    wait: float | None


def rush(
    limiters: Sequence[Limiter], client: str, windows: Sequence[RateWindow], edge: float, seed: int, *, tries: int = 2
) -> list[Attempt]:
    """Have one client ask from many threads around the edge of a window, by clocks that differ by seconds."""
    draw = random.Random(seed)
    times = [[edge + draw.uniform(-2, 2) for _ in range(tries)] for _ in range(CLIENTS)]
    gate = threading.Barrier(CLIENTS)

    def run(i: int) -> list[Attempt]:
        gate.wait()
        limiter = limiters[i % len(limiters)]
        return [Attempt(now, limiter.admit(client, windows, now)) for now in times[i]]

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [attempt for attempts in pool.map(run, range(CLIENTS)) for attempt in attempts]


def judge_rush(windows: Sequence[RateWindow], attempts: Sequence[Attempt], *, exact: bool = True) -> None:
    """Fail if more were admitted than a limit says, or one was refused though there was room.

    Args:
        exact: whether every answer arrived; else a request may have been counted twice.
    """

    def admitted(window: RateWindow, now: float) -> int:
        return sum(a.wait is None and window.start(a.now) == window.start(now) for a in attempts)

    for attempt in attempts:
        counts = {window: admitted(window, attempt.now) for window in windows}
        assert all(count <= window.limit for window, count in counts.items()), f"too many: {counts}"
        if attempt.wait is not None and exact:
            assert any(count == window.limit for window, count in counts.items()), f"refused with room left: {counts}"
