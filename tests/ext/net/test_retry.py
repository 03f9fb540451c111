"""Retries on a clock that the test moves."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from chapterverse.errors import ProviderError, observing_retries
from chapterverse.ext.net.retry import BusyError, RateLimiter, RetryPolicy
from fakes.clocks import Clock


def failing(*errors: ProviderError) -> Callable[[], str]:
    left = list(errors)

    def send() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return send


def busy(pause: float | None = None) -> BusyError:
    return BusyError("busy", pause=pause)


def test_it_waits_as_long_as_it_is_asked_to() -> None:
    clock = Clock(0.0)
    assert RetryPolicy(sleep=clock.sleep).run(failing(busy(7), busy(0), busy(90))) == "done"
    assert clock.slept == [7, 0, 90]


def test_without_a_time_the_waits_double_and_vary_by_a_tenth() -> None:
    clock = Clock(0.0)
    retry = RetryPolicy(tries=9, max_pause=30, sleep=clock.sleep)
    lost = ProviderError("lost", retryable=True)
    assert retry.run(failing(*[lost] * 8)) == "done"
    for slept, expected in zip(clock.slept, [1, 2, 4, 8, 16, 30, 30, 30], strict=True):
        assert 0.9 * expected <= slept <= 1.1 * expected
    assert len(set(clock.slept[-3:])) == 3


def test_it_gives_up_after_six_tries() -> None:
    clock = Clock(0.0)
    with pytest.raises(BusyError):
        RetryPolicy(sleep=clock.sleep).run(failing(*[busy(1)] * 6))
    assert len(clock.slept) == 5


def test_it_waits_ten_minutes_in_all_and_no_more() -> None:
    clock = Clock(0.0)
    assert RetryPolicy(sleep=clock.sleep).run(failing(busy(300), busy(300))) == "done"
    for errors, slept in (([busy(300), busy(301)], [300]), ([busy(3600)], []), ([busy(float("inf"))], [])):
        clock = Clock(0.0)
        with pytest.raises(BusyError):
            RetryPolicy(sleep=clock.sleep).run(failing(*errors))
        assert clock.slept == slept


def test_what_will_not_pass_is_told_at_once() -> None:
    clock = Clock(0.0)
    with pytest.raises(ProviderError, match="never"):
        RetryPolicy(sleep=clock.sleep).run(failing(ProviderError("never")))
    assert clock.slept == []


def test_what_may_have_been_billed_is_not_asked_for_again() -> None:
    clock, refused, lost = Clock(0.0), busy(0), ProviderError("lost", retryable=True)
    refused.unbilled = True
    retry = RetryPolicy(sleep=clock.sleep, once=True)
    assert retry.run(failing(refused, refused)) == "done"
    with pytest.raises(ProviderError, match="lost"):
        retry.run(failing(refused, lost))


def test_the_pace_is_kept_in_every_window() -> None:
    clock = Clock(0.0)
    pace = RateLimiter(2000, 60, clock=clock, sleep=clock.sleep)
    chance = random.Random(1)
    sent: list[tuple[float, int]] = []
    for _ in range(500):
        inputs = chance.randint(1, 96)
        pace.wait(inputs)
        sent.append((clock.now, inputs))
        clock.now += chance.random()
    for at, _ in sent:
        assert sum(n for t, n in sent if at <= t < at + 60) <= 2000
    # And no slower than it must be: 40 s of every 60 would be 1,333.
    assert sum(n for _, n in sent) / clock.now > 1900 / 60


def test_below_the_pace_nobody_waits() -> None:
    clock = Clock(0.0)
    pace = RateLimiter(2000, 60, clock=clock, sleep=clock.sleep)
    for _ in range(20):
        pace.wait(96)
    assert clock.slept == []
    pace.wait(96)
    assert clock.slept == [60]


def test_more_than_the_pace_alone_waits_for_an_empty_window() -> None:
    clock = Clock(0.0)
    pace = RateLimiter(10, 60, clock=clock, sleep=clock.sleep)
    pace.wait(1)
    pace.wait(50)
    assert clock.now == 60


def test_who_observes_is_told_of_each_request_that_is_sent_again() -> None:
    retries, failures = list[int](), iter([2, 1])

    def send() -> str:
        if left := next(failures, 0):
            raise ProviderError("Busy.", retryable=True)
        return f"sent {left}"

    policy = RetryPolicy(sleep=lambda _: None)
    with observing_retries(lambda: retries.append(1)):
        assert policy.run(send) == "sent 0"
    assert len(retries) == 2
    assert policy.run(send) == "sent 0"
    assert len(retries) == 2
