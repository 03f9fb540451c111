from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from chapterverse.errors import ProviderError
from chapterverse_api.deadline import ClientDisconnected, Deadline


def test_time_runs_out() -> None:
    assert 23 < Deadline().seconds_left <= 24
    assert Deadline(0.0).seconds_left == 0.0
    assert not Deadline(0.0).is_aborted


@pytest.mark.parametrize(("milliseconds", "low", "high"), [(60_000, 23, 24), (10_000, 7, 8), (1000, 0, 0), (0, 0, 0)])
def test_a_function_with_less_time_leaves_its_models_less(milliseconds: int, low: float, high: float) -> None:
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: milliseconds)
    assert low <= Deadline.for_lambda(context).seconds_left <= high


@pytest.mark.parametrize("context", [None, {}, object()])
def test_off_lambda_a_turn_has_its_usual_time(context: object) -> None:
    assert 23 < Deadline.for_lambda(context).seconds_left <= 24


def test_a_cut_ends_what_is_waited_for_in_another_thread() -> None:
    deadline, closed = Deadline(), threading.Event()
    waiting = threading.Event()

    def wait() -> None:
        with deadline.closing(closed.set):
            waiting.set()
            closed.wait(10)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(10)
    deadline.abort()
    thread.join(10)
    assert closed.is_set()
    assert (deadline.seconds_left, deadline.is_aborted) == (0.0, True)


def test_what_begins_to_wait_after_the_cut_is_ended_at_once() -> None:
    deadline, closed = Deadline(), list[int]()
    deadline.abort()
    with deadline.closing(lambda: closed.append(1)):
        assert closed == [1]


def test_what_has_ended_is_not_closed_again() -> None:
    deadline, closed = Deadline(), list[int]()
    with deadline.closing(lambda: closed.append(1)):
        pass
    deadline.abort()
    assert closed == []


def test_a_failure_after_the_cut_is_nobodys_failure() -> None:
    deadline = Deadline()
    with pytest.raises(ProviderError), deadline.raising_on_disconnect():
        raise ProviderError("down")
    deadline.abort()
    with pytest.raises(ClientDisconnected), deadline.raising_on_disconnect():
        raise ProviderError("aborted")
