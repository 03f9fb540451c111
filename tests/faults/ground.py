"""A published site, the deployment that is killed, and the states that readers may see."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from chapterverse.store import files
from faults.kinds import S3, Embedded, Kind, Qdrant
from faults.nursery import Nursery
from faults.proxy import Proxy, Trouble
from faults.publishing import NOTHING, Built, Place, Recovery, Seen, attempted, build, recover, steps_of, struck
from faults.scenarios import SCENARIOS, Scenario
from faults.steps import Step, Strike

T = TypeVar("T")
_names = itertools.count()


@contextlib.contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder in memory where there is one: a kill loses nothing that was written, synced to a disk or not."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


class Nurseries:
    """A few of them, each lent to one thread at a time."""

    def __init__(self, nurseries: Sequence[Nursery]) -> None:
        self._free: queue.Queue[Nursery] = queue.Queue()
        self._number = len(nurseries)
        for nursery in nurseries:
            self._free.put(nursery)

    def each(self, items: Iterable[T], do: Callable[[Nursery, T], str]) -> list[str]:
        """Do something to all items, some at a time; return what was wrong with them."""

        def lent(item: T) -> str:
            nursery = self._free.get()
            try:
                return do(nursery, item)
            finally:
                self._free.put(nursery)

        with ThreadPoolExecutor(self._number) as pool:
            return [wrong for wrong in pool.map(lent, items) if wrong]

    def run(self, job: Callable[..., T], *arguments: object) -> T:
        nursery = self._free.get()
        try:
            return nursery.run(job, *arguments)  # type: ignore[no-any-return]
        finally:
            self._free.put(nursery)


@dataclass(frozen=True, slots=True)
class Ground:
    """A scenario at places of one kind.

    Attributes:
        folder: where its history is published, closed; it is only ever copied.
        plant: the mistake that publishers of its deploy make.
        old: what readers see before the deploy.
        new: what a clean build of the deploy leaves.
        new_texts: what the deploy has to embed.
        steps: of the deploy, in order.
    """

    scenario: Scenario
    kind: Kind
    folder: Path
    plant: str
    old: Seen
    new: Built
    new_texts: frozenset[str]
    steps: tuple[Step, ...]

    @classmethod
    def laid(cls, scenario: Scenario, folder: Path, nurseries: Nurseries, kind: Kind) -> Ground:
        with kind.opened(folder / "made") as place:
            old = nurseries.run(build, place, *scenario.history).seen if scenario.history else NOTHING
        # In memory, what an engine touched and never wrote takes room, and copying it time.
        files.copy_folder(folder / "made", folder / "history")
        with kind.opened(folder / "clean") as place:
            new = nurseries.run(build, place, scenario.after)
        for name in ("made", "clean"):
            shutil.rmtree(folder / name)
        ground = cls(scenario, kind, folder / "history", "", old, new, frozenset(), ())
        with ground.copied() as place:
            steps = nurseries.run(steps_of, place, scenario.after)
            return replace(ground, new_texts=place.billed(), steps=steps)

    def planted(self, plant: str, nurseries: Nurseries) -> Ground:
        """Return the same ground with publishers that make a mistake, and the steps that they take."""
        ground = replace(self, plant=plant)
        with ground.copied() as place:
            return replace(ground, steps=nurseries.run(steps_of, place, self.scenario.after))

    @contextlib.contextmanager
    def copied(self) -> Iterator[Place]:
        twin = self.folder.parent / f"trial-{next(_names)}"
        self.kind.copy(self.folder, twin)
        with self.kind.opened(twin, self.plant) as place:
            place.bill.unlink(missing_ok=True)
            yield place
        shutil.rmtree(twin)

    def last_of_each_kind(self) -> list[int]:
        """Return the number of the last step of each kind, and of the end of the run: one more than the last step."""
        last = {step: number for number, step in enumerate(self.steps, 1)}
        return [*sorted(last.values()), len(self.steps) + 1]

    def sample(self, size: int, seed: str) -> list[int]:
        """Return the numbers of so many steps, each of another kind, and of the end of the run; of all if `size` is 0.

        Another seed takes others.
        """
        end = len(self.steps) + 1
        if not size:
            return [*range(1, end + 1)]
        chance = random.Random(f"{self.scenario.name} {seed}")
        kinds: dict[Step, list[int]] = {}
        for number, step in enumerate(self.steps, 1):
            kinds.setdefault(step, []).append(number)
        taken = chance.sample([*kinds.values()], min(size, len(kinds)))
        return [*sorted(map(chance.choice, taken)), end]

    def try_trouble(self, nursery: Nursery, trouble: Trouble, seed: int) -> str:
        """Deploy over a wire that misbehaves; return what is wrong with what comes after, "" for nothing."""
        assert isinstance(self.kind, Qdrant | S3)
        try:
            with self.copied() as place, Proxy(self.kind.port(place), trouble, seed) as proxy:
                said = nursery.run(attempted, self.kind.through(place, proxy.url), self.scenario.after)
                found = nursery.run(recover, place, self.scenario.after)
        except AssertionError as error:
            return f"{trouble} {seed}:\n{error}"
        wrong = [] if said or found.seen == self.new.seen else ["it was said to be published and is not"]
        wrong += self._wrong(said, found)
        return "\n".join([f"{trouble} {seed}, {len(proxy.met)} times:", *wrong]) if wrong else ""

    def try_strike(self, nursery: Nursery, stop: int, strike: Strike) -> str:
        """Strike a copy's deploy at a step; return what is wrong with what comes after, "" for nothing."""
        where = f"step {stop} of {len(self.steps)}, {strike} at {[*self.steps, 'the end'][stop - 1]}:"
        try:
            with self.copied() as place:
                end = nursery.start(struck, place, self.scenario.after, stop, strike).wait()
                found = nursery.run(recover, place, self.scenario.after)
        except AssertionError as error:
            return f"{where}\n{error}"
        wrong = [] if end.killed == (strike is Strike.KILL) else [f"it ended by signal {end.signal}"]
        wrong += self._wrong(end.value, found)
        return "\n".join([where, *wrong]) if wrong else ""

    def _wrong(self, said: str | None, found: Recovery) -> list[str]:
        """Return what is wrong after a deploy that ended early; `said` is what it said of that, None for nothing."""
        wrong = _wrong_sentence(said or "", found.seen == self.new.seen)
        if found.seen not in (self.old, self.new.seen):
            wrong.append(f"readers saw neither the old index nor the new one:\n{found.seen.difference(self.old)}")
        if found.seen == self.new.seen and found.again.embedded:
            wrong.append(f"{found.again.embedded} texts of an index that was live were embedded again")
        if found.again.seen != self.new.seen:
            wrong.append(f"the next run left no clean build:\n{found.again.seen.difference(self.new.seen)}")
        if found.again.ledger != self.new.ledger:
            wrong.append("the next run left another ledger than a clean build")
        if found.idle:
            wrong.append(f"{found.idle} texts were embedded by a run that had nothing to do")
        if held := found.billed - self.new_texts:
            wrong.append(f"{len(held)} texts were embedded whose vectors the index held")
        return wrong


class Grounds:
    """The grounds of all tests, each laid when a test asks for it first: nobody changes one."""

    def __init__(self, folder: Path, nurseries: Nurseries) -> None:
        self._folder = folder
        self._nurseries = nurseries
        self._laid: dict[str, Ground] = {}

    def get(self, scenario: str, kind: Kind | None = None) -> Ground:
        kind = kind or Embedded()
        name = f"{type(kind).__name__}-{scenario.replace(' ', '-')}"
        if name not in self._laid:
            folder = self._folder / name
            folder.mkdir()
            self._laid[name] = Ground.laid(SCENARIOS[scenario], folder, self._nurseries, kind)
        return self._laid[name]


def _wrong_sentence(said: str, published: bool) -> list[str]:
    wrong = [] if "\n" not in said else [f"more than a sentence was said: {said}"]
    if published and "nothing was published" in said:
        wrong.append(f"it was published, and said: {said}")
    return wrong
