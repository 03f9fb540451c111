from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from chapterverse.errors import ProviderError
from chapterverse_api.cutoff import Cutoff, Left


def test_time_runs_out() -> None:
    assert 23 < Cutoff().left <= 24
    assert Cutoff(0.0).left == 0.0
    assert not Cutoff(0.0).is_cut


@pytest.mark.parametrize(("milliseconds", "low", "high"), [(60_000, 23, 24), (10_000, 7, 8), (1000, 0, 0), (0, 0, 0)])
def test_a_function_with_less_time_leaves_its_models_less(milliseconds: int, low: float, high: float) -> None:
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: milliseconds)
    assert low <= Cutoff.under(context).left <= high


@pytest.mark.parametrize("context", [None, {}, object()])
def test_off_lambda_a_turn_has_its_usual_time(context: object) -> None:
    assert 23 < Cutoff.under(context).left <= 24


def test_a_cut_ends_what_is_waited_for_in_another_thread() -> None:
    cutoff, closed = Cutoff(), threading.Event()
    waiting = threading.Event()

    def wait() -> None:
        with cutoff.closing(closed.set):
            waiting.set()
            closed.wait(10)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(10)
    cutoff.cut()
    thread.join(10)
    assert closed.is_set()
    assert (cutoff.left, cutoff.is_cut) == (0.0, True)


def test_what_begins_to_wait_after_the_cut_is_ended_at_once() -> None:
    cutoff, closed = Cutoff(), list[int]()
    cutoff.cut()
    with cutoff.closing(lambda: closed.append(1)):
        assert closed == [1]


def test_what_has_ended_is_not_closed_again() -> None:
    cutoff, closed = Cutoff(), list[int]()
    with cutoff.closing(lambda: closed.append(1)):
        pass
    cutoff.cut()
    assert closed == []


def test_a_failure_after_the_cut_is_nobodys_failure() -> None:
    cutoff = Cutoff()
    with pytest.raises(ProviderError), cutoff.heeding():
        raise ProviderError("down")
    cutoff.cut()
    with pytest.raises(Left), cutoff.heeding():
        raise ProviderError("aborted")
