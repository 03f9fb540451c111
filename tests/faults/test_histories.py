"""Sites that change, with deployments killed in the middle of a history and repeated."""

from __future__ import annotations

import random
from pathlib import Path

from faults.amounts import STRIKES
from faults.ground import Nurseries
from faults.kinds import Embedded
from faults.nursery import Nursery
from faults.publishing import Place, build, look, steps_of, struck
from faults.scenarios import State, written
from faults.steps import Strike
from faults.test_kills import history

FOLDER_OF = 200
#: How many sites are struck.
SITES = STRIKES or 20


def test_a_folder_of_200_pages_is_renamed_for_nothing(folder: Path, nurseries: Nurseries) -> None:
    def pages(name: str) -> State:
        return State(tuple(written(f"{name}/{i}.md", i, ("more", i)) for i in range(FOLDER_OF)))

    with Embedded().opened(folder / "index") as place:
        assert nurseries.run(build, place, pages("guide")).embedded == 2 * FOLDER_OF
        moved = nurseries.run(build, place, pages("manual"))
    assert moved.embedded == 0
    with Embedded().opened(folder / "clean") as place:
        assert nurseries.run(build, place, pages("manual")) == moved


def _embedded(folder: Path) -> Place:
    return Place(folder, f"edge:{folder / 'index'}")


def live_through(nursery: Nursery, folder: Path, seed: int, strikes: int) -> str:
    """Kill one deployment after the other; return the faults at the end, "" for none."""
    chance, states = random.Random(seed), history(seed)
    clean = [nursery.run(build, _embedded(folder / f"clean-{seed}-{i}"), state) for i, state in enumerate(states)]
    place = _embedded(folder / f"index-{seed}")
    nursery.run(build, place, states[0])
    longest = len(nursery.run(steps_of, place, states[1]))
    for number in range(strikes):
        # The next deploy is of another state: nobody ever runs the struck one again.
        state = states[chance.randrange(len(states))]
        strike = chance.choice([Strike.KILL, Strike.INTERRUPT])
        nursery.start(struck, place, state, chance.randrange(longest), strike).wait()
        if nursery.run(look, place) not in [built.seen for built in clean]:
            return f"seed {seed}, strike {number}: neither the old index nor the new one"
    last = chance.randrange(len(states))
    return "" if nursery.run(build, place, states[last]) == clean[last] else f"seed {seed}: no clean build"


def test_any_struck_history_ends_as_a_clean_build(folder: Path, nurseries: Nurseries) -> None:
    assert not nurseries.each(range(SITES), lambda nursery, seed: live_through(nursery, folder, seed, 12))
