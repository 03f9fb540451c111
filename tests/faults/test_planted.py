"""A test of the tests: planted faults of publishers are caught."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from faults.ground import Ground, Grounds, Nurseries
from faults.kinds import Qdrant
from faults.planted import EMBEDDED, SERVED
from faults.steps import Strike


@pytest.fixture
def ground(grounds: Grounds) -> Ground:
    return grounds.get("rename")


def telling(ground: Ground) -> list[int]:
    """Return the steps at which a mistake around the head shows, and the end, where every other one does."""
    last = {step: number for number, step in enumerate(ground.steps, 1)}
    # Whatever a planted publisher does by itself is done for `apply`.
    around = [n for step, n in last.items() if step.place == "indexing.apply:apply" or step.call == "rename"]
    return [*sorted(around), len(ground.steps) + 1]


@pytest.mark.parametrize("plant", EMBEDDED)
def test_a_mistake_is_caught(plant: str, ground: Ground, nurseries: Nurseries) -> None:
    planted = ground.planted(plant, nurseries)
    assert nurseries.each(telling(planted), lambda nursery, stop: planted.try_strike(nursery, stop, Strike.KILL))


@pytest.mark.parametrize("plant", SERVED)
def test_a_mistake_on_a_server_is_caught(plant: str, grounds: Grounds, nurseries: Nurseries) -> None:
    sound = grounds.get("rename", Qdrant())
    planted = replace(sound, plant=plant)
    for ground, found in ((sound, False), (planted, True)):
        stop = len(ground.steps) + 1
        wrong = nurseries.each([stop], partial(ground.try_strike, strike=Strike.KILL))
        assert bool(wrong) == found


def test_a_sound_publisher_is_not(ground: Ground, nurseries: Nurseries) -> None:
    stops = telling(ground)
    assert not nurseries.each(stops, lambda nursery, stop: ground.try_strike(nursery, stop, Strike.KILL))


def test_a_call_that_nobody_has_thought_of_is_a_step(ground: Ground, nurseries: Nurseries) -> None:
    """The head that is written once more, by a publisher that no list knows of, gets its kills like all others."""
    planted = ground.planted("head_in_place", nurseries)
    assert {s.call for s in planted.steps if s.place == "indexing.apply:apply"} >= {"open", "TextIOWrapper.write"}
    assert not [s for s in ground.steps if s.place == "indexing.apply:apply"]
