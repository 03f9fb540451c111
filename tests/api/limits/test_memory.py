from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from api.limits.test_contract import DAY, HOUR, MIDNIGHT, MINUTE
from chapterverse_api.limits import ACCOUNT_SECONDS, MemoryLimiter, RateWindow


def size(limiter: MemoryLimiter) -> int:
    """Return how much a limiter remembers."""
    clients = limiter._clients.values()
    return len(clients) + sum(map(len, clients)) + len(limiter._accounts) + len(limiter._tokens)


def test_it_forgets_what_is_over() -> None:
    limiter = MemoryLimiter()
    windows = [RateWindow(10, MINUTE), RateWindow(60, HOUR), RateWindow(200, DAY)]
    for i in range(200):
        now = MIDNIGHT + i * DAY
        assert limiter.admit("a", windows, now) is None
        assert limiter.reserve(f"docs#{i}", 1, 1, now)
        assert limiter.use_token(f"t{i}", now + 300, now)
    # The client, its windows, the accounts of a month and the last tokens.
    assert size(limiter) < 12 + ACCOUNT_SECONDS / DAY
    assert len(limiter._tokens) < 3


def test_of_many_clients_those_that_asked_last_are_remembered() -> None:
    limiter, windows = MemoryLimiter(max_clients=50), [RateWindow(1, DAY)]
    for i in range(50):
        assert limiter.admit(f"{i}", windows, MIDNIGHT) is None
    # Whoever is refused is remembered for it.
    assert limiter.admit("0", windows, MIDNIGHT + 1) == DAY - 1
    assert limiter.admit("new", windows, MIDNIGHT) is None
    assert limiter.admit("0", windows, MIDNIGHT + 1) == DAY - 1
    assert limiter.admit("1", windows, MIDNIGHT) is None
    assert size(limiter) == 2 * 50


def test_it_forgets_at_the_moment_at_which_something_is_over() -> None:
    limiter, windows = MemoryLimiter(), [RateWindow(9, MINUTE)]
    sizes = list[int]()
    for now in (0, 119, 120):
        limiter.admit("a", windows, MIDNIGHT + now)
        sizes.append(size(limiter))
    # A window is remembered for twice its length.
    assert sizes == [2, 3, 3]
    limiter.reserve("docs#1", 7, 10, MIDNIGHT)
    limiter.reserve("docs#2", 1, 10, MIDNIGHT + ACCOUNT_SECONDS)
    assert (limiter.spent_micros("docs#1"), limiter.spent_micros("docs#2")) == (0, 1)
    assert 31 * DAY < ACCOUNT_SECONDS < 62 * DAY


def test_each_new_token_removes_two_that_are_over() -> None:
    limiter = MemoryLimiter()
    for name in "abcd":
        assert limiter.use_token(name, MIDNIGHT + 1, MIDNIGHT)
    assert limiter.use_token("e", MIDNIGHT + 9, MIDNIGHT + 1)
    assert limiter._tokens.keys() == {"c", "d", "e"}
    assert limiter.use_token("f", MIDNIGHT + 9, MIDNIGHT + 0.5)
    assert limiter._tokens.keys() == {"c", "d", "e", "f"}


@pytest.fixture
def hurry() -> Iterator[None]:
    """Threads change places so often that what has no lock falls apart."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("step", ["admit", "reserve", "first"])
def test_no_step_comes_between_another_one(step: str) -> None:
    limiter, windows = MemoryLimiter(), [RateWindow(2000, DAY)]
    steps: dict[str, Callable[[int], bool]] = {
        "admit": lambda _: limiter.admit("a", windows, MIDNIGHT) is None,
        "reserve": lambda _: limiter.reserve("docs", 1, 2000, MIDNIGHT) is not None,
        "first": lambda i: limiter.use_token(f"t{i // 4}", MIDNIGHT + 1, MIDNIGHT),
    }
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(steps[step], range(8000))) == 2000
