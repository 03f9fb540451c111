"""Publishers killed at any moment, beside a reader that never stops."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from chapterverse.indexing.sync import index
from faults.amounts import KILLS
from faults.kinds import Embedded, Kind
from faults.nursery import Nursery
from faults.publishing import Place, build, look
from faults.scenarios import State, written

#: Seconds within which a publisher is killed; it takes about half of that to publish.
_LONGEST_LIFE = 0.6


def history(seed: int) -> list[State]:
    """Return states of a site that grows, shrinks, moves, and changes its embedder."""
    chance = random.Random(seed)
    states = []
    for number in range(6):
        names = chance.sample("abcdefgh", chance.randint(2, 6))
        folder = chance.choice(["guide", "manual"])
        pages = [written(f"{folder}/{name}.md", *chance.sample(range(9), 2)) for name in sorted(names)]
        states.append(State((written("index.md", seed, number), *pages), chance.choice(["counting", "another"])))
    return states


def publish_forever(place: Place, states: list[State], first: int) -> None:
    with place.entered():
        for number in range(first, 1_000_000):
            state = states[number % len(states)]
            index(state.sources(), place.target(state))


def read_until_stopped(place: Place) -> tuple[int, set[tuple[str, ...]], list[int]]:
    """Return the number of reads, the states seen, and their generations in order."""
    reads, seen, generations = 0, set(), [0]
    while not (place.folder / "stop").exists():
        found = look(place)
        reads += 1
        seen.add(found.lines)
        if found.generation != generations[-1]:
            generations.append(found.generation)
    return reads, seen, generations


def kill_publishers(kind: Kind, folder: Path, kills: int, seed: int) -> None:
    chance, states = random.Random(seed), history(seed)
    with Nursery() as nursery, Nursery() as readers:
        clean = []
        for number, state in enumerate(states):
            with kind.opened(folder / f"clean-{number}") as place:
                clean.append(nursery.run(build, place, state))
        with kind.opened(folder / "index") as place:
            nursery.run(build, place, states[0])
            reader = readers.start(read_until_stopped, place)
            landed = 0
            while landed < kills:
                publisher = nursery.start(publish_forever, place, states, chance.randrange(len(states)))
                time.sleep(chance.uniform(0, _LONGEST_LIFE))
                publisher.kill()
                landed += publisher.wait().killed
                assert nursery.run(look, place) in [built.seen for built in clean]
                if chance.random() < 0.5:
                    number = chance.randrange(len(states))
                    assert nursery.run(build, place, states[number]) == clean[number]
            (place.folder / "stop").touch()
            reads, seen, generations = reader.wait().value
    assert seen <= {built.seen.lines for built in clean}
    assert generations == sorted(generations)
    assert reads > kills


@pytest.mark.parametrize("seed", range(1, 5))
def test_killed_publishers_leave_a_whole_index(folder: Path, seed: int) -> None:
    kill_publishers(Embedded(), folder, KILLS // 4, seed)
