"""The contract of every limiter."""

from __future__ import annotations

import pytest

from api.limits.conftest import Open
from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.limits import ACCOUNT_SECONDS, RateWindow

#: Midnight of 2026-11-21 (UTC): a minute, an hour and a day begin.
MIDNIGHT = 1_795_219_200.0
MINUTE, HOUR, DAY = 60, 3600, 86400


def test_so_many_are_admitted_as_the_limit_says(place: Open) -> None:
    windows = [RateWindow(3, MINUTE)]
    answers = [place().admit("a", windows, MIDNIGHT + 12.5) for _ in range(5)]
    assert answers == [None, None, None, 47.5, 47.5]


def test_each_client_has_its_own_count(place: Open) -> None:
    limiter, windows = place(), [RateWindow(1, MINUTE)]
    assert [limiter.admit(client, windows, MIDNIGHT) for client in ("a", "b", "a", "b")] == [None, None, 60.0, 60.0]


@pytest.mark.parametrize("seconds", [1, MINUTE, HOUR, DAY])
def test_a_new_window_begins_at_its_edge_and_not_before(place: Open, seconds: int) -> None:
    limiter, windows = place(), [RateWindow(2, seconds)]
    edge = MIDNIGHT + seconds
    at = [edge - 0.5, edge - 0.5, edge - 0.25, edge, edge, edge]
    assert [limiter.admit("a", windows, now) for now in at] == [None, None, 0.25, None, None, float(seconds)]


def test_a_refused_request_counts_in_no_window(place: Open) -> None:
    limiter, windows = place(), [RateWindow(1, MINUTE), RateWindow(2, HOUR)]
    assert limiter.admit("a", windows, MIDNIGHT) is None
    assert limiter.admit("a", windows, MIDNIGHT + 1) == 59.0
    # Had the refused one been counted, the hour were full by now.
    assert limiter.admit("a", windows, MIDNIGHT + 60) is None
    assert limiter.admit("a", windows, MIDNIGHT + 120) == 3480.0


def test_the_wait_is_that_of_the_last_full_window(place: Open) -> None:
    limiter, windows = place(), [RateWindow(1, MINUTE), RateWindow(1, HOUR), RateWindow(5, DAY)]
    assert limiter.admit("a", windows, MIDNIGHT + 30) is None
    assert limiter.admit("a", windows, MIDNIGHT + 40) == 3560.0


def test_without_a_window_everything_is_admitted(place: Open) -> None:
    limiter = place()
    assert [limiter.admit("a", [], MIDNIGHT) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("jump", [-10 * DAY, -HOUR, -90, 90, HOUR, 10 * DAY])
def test_a_clock_that_jumps_locks_nobody_out_for_more_than_a_window(place: Open, jump: float) -> None:
    limiter, windows = place(), [RateWindow(2, MINUTE)]
    assert [limiter.admit("a", windows, MIDNIGHT + jump) for _ in range(3)] == [None, None, 60.0 - jump % 60]
    assert [limiter.admit("a", windows, MIDNIGHT) for _ in range(3)] == [None, None, 60.0]
    assert limiter.admit("a", windows, MIDNIGHT + 180) is None


def test_a_clock_that_is_a_little_late_finds_its_window_full(place: Open) -> None:
    limiter, windows = place(), [RateWindow(2, MINUTE)]
    at = [MIDNIGHT + 59, MIDNIGHT + 59, MIDNIGHT + 61, MIDNIGHT + 59, MIDNIGHT + 61, MIDNIGHT + 62, MIDNIGHT + 59]
    assert [limiter.admit("a", windows, now) for now in at] == [None, None, None, 1.0, None, 58.0, 1.0]


def test_money_is_set_aside_up_to_the_cap(place: Open) -> None:
    limiter = place()
    first = limiter.reserve("docs", 40, 100, MIDNIGHT)
    second = place().reserve("docs", 60, 100, MIDNIGHT)
    assert first
    assert second
    assert (first.account, first.micros, first.spent) == ("docs", 40, 0)
    assert (second.micros, second.spent) == (60, 40)
    assert limiter.reserve("docs", 1, 100, MIDNIGHT) is None
    assert (limiter.spent_micros("docs"), limiter.spent_micros("other")) == (100, 0)


def test_what_is_over_the_cap_by_itself_is_refused(place: Open) -> None:
    limiter = place()
    assert limiter.reserve("docs", 101, 100, MIDNIGHT) is None
    assert limiter.reserve("docs", 1, 0, MIDNIGHT) is None
    assert limiter.spent_micros("docs") == 0


def test_settling_gives_back_what_was_not_spent_and_once_only(place: Open) -> None:
    limiter = place()
    reserved = limiter.reserve("docs", 90, 100, MIDNIGHT)
    assert reserved
    limiter.settle(reserved, 25)
    place().settle(reserved, 25)
    limiter.settle(reserved, 0)
    assert limiter.spent_micros("docs") == 25
    again = limiter.reserve("docs", 75, 100, MIDNIGHT)
    assert again
    assert (again.spent, limiter.spent_micros("docs")) == (25, 100)


def test_settling_takes_no_more_than_was_set_aside(place: Open) -> None:
    limiter = place()
    reserved = limiter.reserve("docs", 90, 100, MIDNIGHT)
    assert reserved
    limiter.settle(reserved, 91)
    assert limiter.spent_micros("docs") == 90


def test_what_cost_nothing_is_given_back_whole(place: Open) -> None:
    limiter = place()
    reserved = limiter.reserve("docs", 90, 90, MIDNIGHT)
    assert reserved
    limiter.settle(reserved, 0)
    assert limiter.spent_micros("docs") == 0
    free = limiter.reserve("docs", 0, 0, MIDNIGHT)
    assert free
    assert (free.micros, free.spent, limiter.spent_micros("docs")) == (0, 0, 0)


def test_each_account_has_its_own_money(place: Open) -> None:
    limiter = place()
    one, other = limiter.reserve("a#2026-11-21", 9, 10, MIDNIGHT), limiter.reserve("b#2026-11-21", 8, 10, MIDNIGHT)
    assert one
    assert other
    limiter.settle(one, 1)
    assert (limiter.spent_micros("a#2026-11-21"), limiter.spent_micros("b#2026-11-21")) == (1, 8)


def test_a_day_that_is_over_leaves_the_next_one_whole_and_may_still_be_settled(place: Open) -> None:
    limiter = place()
    late = limiter.reserve("docs#1", 10, 10, MIDNIGHT - 1)
    assert late
    assert limiter.reserve("docs#2", 10, 10, MIDNIGHT)
    limiter.settle(late, 4)
    assert (limiter.spent_micros("docs#1"), limiter.spent_micros("docs#2")) == (4, 10)


def test_an_account_is_kept_for_as_long_as_it_says(place: Open) -> None:
    limiter = place()
    assert limiter.reserve("docs#1", 7, 10, MIDNIGHT)
    assert limiter.reserve("docs#2", 1, 10, MIDNIGHT + ACCOUNT_SECONDS - 1)
    assert limiter.spent_micros("docs#1") == 7


def test_what_is_forgotten_may_still_be_settled(place: Open) -> None:
    limiter = place()
    late = limiter.reserve("docs#1", 7, 10, MIDNIGHT)
    assert late
    assert limiter.reserve("docs#2", 5, 10, MIDNIGHT + ACCOUNT_SECONDS + 1)
    limiter.settle(late, 3)
    assert limiter.spent_micros("docs#2") == 5


def test_a_clock_that_was_days_ahead_finds_what_was_spent(place: Open) -> None:
    limiter = place()
    assert limiter.reserve("docs#1", 7, 10, MIDNIGHT)
    for day in range(30):
        assert limiter.reserve(f"docs#{day + 2}", 1, 10, MIDNIGHT + day * DAY)
    assert limiter.reserve("docs#1", 7, 10, MIDNIGHT) is None
    assert limiter.spent_micros("docs#1") == 7


def test_amounts_are_exact_far_beyond_any_bill(place: Open) -> None:
    limiter, most = place(), 2**62
    reserved = limiter.reserve("docs", most - 1, most, MIDNIGHT)
    assert reserved
    assert limiter.reserve("docs", 2, most, MIDNIGHT) is None
    limiter.settle(reserved, most - 3)
    assert limiter.spent_micros("docs") == most - 3


def test_a_token_is_new_once(place: Open) -> None:
    limiter = place()
    assert limiter.use_token("t", MIDNIGHT + 300, MIDNIGHT)
    assert not place().use_token("t", MIDNIGHT + 300, MIDNIGHT + 1)
    assert not limiter.use_token("t", MIDNIGHT + 900, MIDNIGHT + 299)
    assert limiter.use_token("u", MIDNIGHT + 300, MIDNIGHT)
    assert limiter.use_token("t", MIDNIGHT + 900, MIDNIGHT + 300)
    assert not limiter.use_token("t", MIDNIGHT + 900, MIDNIGHT + 301)


def test_a_token_is_remembered_however_many_come_after_it(place: Open) -> None:
    limiter, tokens = place(), [f"t{i}" for i in range(12)]
    assert all(limiter.use_token(token, MIDNIGHT + 300, MIDNIGHT) for token in tokens)
    assert not any(limiter.use_token(token, MIDNIGHT + 300, MIDNIGHT + 299) for token in tokens)


@pytest.mark.parametrize("text", ["", "a b", "ü", "\U0001f600", "a#b@c", "x" * 900, "'; DROP TABLE limiter_tokens; --"])
def test_names_are_only_names(place: Open, text: str) -> None:
    limiter = place()
    assert [limiter.admit(text, [RateWindow(1, MINUTE)], MIDNIGHT) for _ in range(2)] == [None, 60.0]
    reserved = limiter.reserve(text, 5, 10, MIDNIGHT)
    assert reserved
    limiter.settle(reserved, 2)
    assert limiter.spent_micros(text) == 2
    assert [limiter.use_token(text, MIDNIGHT + 9, MIDNIGHT) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("name", ["", "redis", "redis:6379", "sqlite", "sqlite:", "dynamodb", "dynamodb:", "memory:x"])
def test_a_limiter_that_does_not_exist_is_told(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_offer("limiter", Settings(limiter=name))
    assert str(caught.value) == f"CHAPTERVERSE_LIMITER is {name!r}: use memory, sqlite:PATH or dynamodb:TABLE."


def test_opening_one_neither_reads_nor_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("memory", "sqlite:/proc/nowhere/limits.sqlite", "dynamodb:limits"):
        assert open_offer("limiter", Settings(limiter=name))
