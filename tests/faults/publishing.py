"""The child processes: publish a state of the site, die at a step, and inspect the result."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from chapterverse.errors import ChapterVerseError, IndexMissing
from chapterverse.ext.transfer.maintenance import export
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse.text import lexical, tokens
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder
from faults.impatience import impatient_store
from faults.planted import PLANTS
from faults.scenarios import State
from faults.steps import Step, Strike, Watch

#: What differs between two builds of one site.
_OF_THE_RUN = {"generation": 0, "published_at": "", "token": ""}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index lives, as settings say it.

    Attributes:
        folder: the working directory of whoever publishes there.
        plant: the name of a mistake that its publishers make (see `faults.planted`).
        ahead: seconds by which the clock of whoever comes here is ahead.
        environment: variables by which the store or its ledger is found.
    """

    folder: Path
    store: str
    ledger: str = ""
    plant: str = ""
    ahead: int = 0
    environment: tuple[tuple[str, str], ...] = ()

    def target(self, state: State) -> Target:
        settings = Settings.from_environment(store=self.store, ledger=self.ledger or None)
        store = impatient_store(settings, self.folder, self.ahead)
        target = replace(Target.open(settings, SCOPE, BASE_URL), store=store, embedder=state.embedder(self.bill))
        return PLANTS[self.plant](target) if self.plant else target

    @property
    def bill(self) -> Path:
        return self.folder / "bill"

    def billed(self) -> frozenset[str]:
        """Return all texts that were embedded for this place."""
        return frozenset(self.bill.read_text("utf-8").splitlines() if self.bill.exists() else ())

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Work there, for good: a child has but one job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        os.chdir(self.folder)
        os.environ.update(self.environment)
        yield


@dataclass(frozen=True, slots=True)
class Seen:
    """An index as whoever opens it sees it, in lines that are equal for equal indexes; its generation is its own."""

    lines: tuple[str, ...]
    generation: int = field(default=0, compare=False)

    def difference(self, other: Seen) -> str:
        """Return the first lines that only one of them has; "" for equals."""
        if self == other:
            return ""
        only = [f"+ {line[:300]}" for line in self.lines if line not in other.lines]
        only += [f"- {line[:300]}" for line in other.lines if line not in self.lines]
        return "\n".join(only[:6]) or "the same lines in another order"


#: Before the first publication there is nothing.
NOTHING = Seen(())


@dataclass(frozen=True, slots=True)
class Built:
    """What a run left behind.

    Attributes:
        ledger: rows as JSON lines, without their times.
        embedded: how many texts the embedder was asked for.
    """

    seen: Seen
    ledger: tuple[str, ...]
    embedded: int = field(compare=False)


def build(place: Place, *states: State) -> Built:
    """Publish states one after the other; return what is there then."""
    with place.entered():
        for state in states:
            target = place.target(state)
            index(state.sources(), target)
        return Built(look(place), _ledger(target), _asked(target))


def steps_of(place: Place, state: State) -> tuple[Step, ...]:
    """Publish a state; return every step of that."""
    with place.entered():
        target = place.target(state)
        with Watch() as watch:
            index(state.sources(), target)
    return tuple(watch.steps)


def struck(place: Place, state: State, stop: int, strike: Strike) -> str:
    """Publish a state, be struck at the step of that number, and return what is said of it; a kill says nothing."""
    with place.entered():
        try:
            target = place.target(state)
            with Watch(stop, strike):
                index(state.sources(), target)
                # There may be no such step any more: then it is the one after the last.
                strike.fall("")
        except (ChapterVerseError, OSError) as error:
            return str(error)
        except KeyboardInterrupt:
            return "interrupted"
    raise AssertionError("whatever was struck was swallowed")


def attempted(place: Place, state: State) -> str:
    """Publish a state where that may fail; return what is said then, "" when it did not."""
    with place.entered():
        target = place.target(state)
        try:
            index(state.sources(), target)
        except ChapterVerseError as error:
            return str(error)
    return ""


def look(place: Place) -> Seen:
    """Return what a reader sees; that its points, counts and head agree is found on the way."""
    with place.entered():
        settings = Settings.from_environment(store=place.store)
        try:
            return _seen(impatient_store(settings, place.folder, 0).snapshot(SCOPE))
        except IndexMissing:
            return NOTHING


def _seen(snapshot: Snapshot) -> Seen:
    points = list(snapshot.points())
    terms = Counter(t for p in points for t in p.lexical.indices)
    assert snapshot.document_frequencies([*terms]) == [*terms.values()], "the counts of terms are of other points"
    assert snapshot.head.chunks == len(points), f"the head says {snapshot.head.chunks} chunks, there are {len(points)}"
    head = json.dumps(asdict(replace(snapshot.head, **_OF_THE_RUN)), sort_keys=True)  # type: ignore[arg-type]
    return Seen((head, *export(snapshot, canonical=True)), snapshot.head.generation)


def _ledger(target: Target) -> tuple[str, ...]:
    rows = target.ledger.records(SCOPE).values()
    return tuple(sorted(json.dumps(asdict(replace(r, generation=0, last_indexed_at="")), sort_keys=True) for r in rows))


def _asked(target: Target) -> int:
    return len(target.embedder.seen) if isinstance(target.embedder, CountingEmbedder) else 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """What came after a strike.

    Attributes:
        seen: what a reader saw between the strike and the next run.
        again: what the next run left.
        idle: how many texts the run after that embedded.
        billed: the texts that all of them embedded, the struck one too.
    """

    seen: Seen
    again: Built
    idle: int
    billed: frozenset[str]


def recover(place: Place, state: State) -> Recovery:
    """Look at what a struck publisher left, publish the state again, and once more."""
    seen = look(place)
    # A lease of a server is taken over when it has run out.
    place = replace(place, ahead=1000)
    again = build(place, state)
    with place.entered():
        target = place.target(state)
        index(state.sources(), target)
    return Recovery(seen, again, _asked(target), place.billed())


def warm() -> None:
    """Load what the first run would load, so that no child has to, and open nothing."""
    for name in ("store.shard_draft", "store.edge", "ledger", "ext.postgres"):
        importlib.import_module(f"chapterverse.{name}")
    for name in ("boto3", "botocore.httpsession", "botocore.signers", "psycopg"):
        importlib.import_module(name)
    lexical.document_vector((), "words of a page")
    tokens.count("words of a page")
