"""A calibration on every store, and through all later changes of an index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from chapterverse.calibration import Calibration, Coefficients
from chapterverse.errors import IndexLocked
from chapterverse.ext.transfer import maintenance
from chapterverse.indexing import sync
from chapterverse.indexing.apply import measured_fields
from chapterverse.indexing.target import Target
from chapterverse.ledger import Ledger, rows_of
from chapterverse.model import ENCODER, Head, Page
from chapterverse.store import Store, open_store
from chapterverse_api.ext.evaluation.calibrate_command import tune
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder, page, prose, section, source
from store.test_store_contract import STORES

MEASURED = Calibration(Coefficients(-1.5, 2.25, 1.0, 0.0, 3.0), Coefficients(-2.0, 1.0, 0.5, 0.0, 2.0, 4.0), 0.5, 80)
WEIGHT = 0.7
LOST = "The calibration of docs was made for another embedder, or for words read by other rules, so it was replaced:"


def silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


@dataclass
class Ground:
    """An index of two pages."""

    store: Store
    ledger: Ledger
    embedder: CountingEmbedder

    @property
    def target(self) -> Target:
        return Target(SCOPE, self.store, self.ledger, self.embedder, base_url=BASE_URL)

    @property
    def head(self) -> Head:
        return self.store.snapshot(SCOPE).head

    def index(self, *more: str) -> tuple[str, ...]:
        """Index two pages and these; return the warnings."""
        names = ("a", "b", *more)
        pages: Sequence[Page] = [page(f"{name}.md", section("S", prose(name))) for name in names]
        return sync.index(map(source, pages), self.target).warnings

    def tune(self) -> Head:
        return tune(self.head, MEASURED, WEIGHT, self.target, silent)


@pytest.fixture(params=["edge", "qdrant", "s3"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    with STORES[request.param](tmp_path) as place:
        made = Ground(open_store(place("index")), Ledger.on_sqlite(tmp_path / "ledger.sqlite"), CountingEmbedder())
        made.index()
        yield made


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Ground]:
    with STORES["edge"](tmp_path) as place:
        made = Ground(open_store(place("index")), Ledger.on_sqlite(tmp_path / "ledger.sqlite"), CountingEmbedder())
        made.index()
        yield made


def is_measured(head: Head) -> bool:
    return head.calibration == MEASURED.to_json() and head.fusion_weight == WEIGHT


def test_a_head_moves_and_its_points_stay(ground: Ground) -> None:
    before, points = ground.head, list(ground.store.snapshot(SCOPE).points())
    head = ground.tune()
    assert is_measured(head)
    assert (head.generation, ground.head) == (2, head)
    assert head.token != before.token
    same = {"generation": 1, "calibration": {}, "fusion_weight": 0, "token": "", "published_at": ""}
    assert replace(head, **same) == replace(before, **same)  # type: ignore[arg-type]
    assert list(ground.store.snapshot(SCOPE).points()) == points
    assert ground.store.is_complete(SCOPE)


def test_the_next_index_has_nothing_to_do(ground: Ground) -> None:
    ground.tune()
    ground.embedder.seen.clear()
    ground.index()
    assert (ground.head.generation, ground.embedder.seen) == (2, [])
    assert is_measured(ground.head)


def test_a_measured_calibration_outlives_new_pages(ground: Ground) -> None:
    ground.tune()
    assert ground.index("c") == ()
    assert (ground.head.generation, ground.head.chunks) == (3, 3)
    assert is_measured(ground.head)


def test_what_says_the_same_is_not_published_again(edge: Ground) -> None:
    head = edge.tune()
    assert edge.tune() == head


def test_another_embedder_ends_it_with_a_warning(edge: Ground) -> None:
    untuned = edge.head
    edge.tune()
    edge.embedder = CountingEmbedder("other")
    (warning,) = edge.index()
    assert warning.startswith(LOST)
    assert warning.endswith("run `chapterverse calibrate` again.")
    assert edge.head.calibration["questions"] == 0
    assert edge.head.fusion_weight == untuned.fusion_weight
    assert edge.index("c") == ()


def test_other_rules_for_words_end_it(edge: Ground) -> None:
    head = edge.tune()
    assert measured_fields(head, edge.embedder.card)
    older = replace(head, pipeline=head.pipeline.replace(ENCODER, "terms/0"))
    assert measured_fields(older, edge.embedder.card) == {}
    assert measured_fields(replace(head, calibration={"bias": 1.0}), edge.embedder.card) == {}
    assert measured_fields(None, edge.embedder.card) == {}


def test_a_damaged_index_is_built_again_as_it_was_tuned(edge: Ground, tmp_path: Path) -> None:
    edge.tune()
    for file in tmp_path.rglob("terms.bin"):
        file.write_bytes(b"")
    (warning,) = edge.index()
    assert "was damaged" in warning
    assert is_measured(edge.head)


def test_a_ledger_of_another_index_stays_worth_nothing(edge: Ground) -> None:
    edge.ledger.save(SCOPE, 7, (), (), "another")
    head = edge.tune()
    assert rows_of(edge.target.ledger, head) is None
    edge.embedder.seen.clear()
    edge.index()
    assert edge.embedder.seen == []
    assert is_measured(edge.head)


def test_an_export_takes_it_along(edge: Ground, tmp_path: Path) -> None:
    edge.tune()
    whole, bare = (
        maintenance.read_export(maintenance.export(edge.store.snapshot(SCOPE), canonical=canonical), "file")
        for canonical in (False, True)
    )
    with STORES["edge"](tmp_path / "copies") as place:
        for name, exported, measured in (("whole", whole, True), ("bare", bare, False)):
            other = Target(SCOPE, open_store(place(name)), Ledger.on_sqlite(tmp_path / name), edge.embedder)
            maintenance.fill(exported, other)
            head = other.store.snapshot(SCOPE).head
            assert is_measured(head) is measured
    # A canonical file says nothing of it, so what is there stays; and an export of before, with nothing else new, too.
    assert maintenance.fill(bare, edge.target).generation == 2
    assert is_measured(edge.head)


def test_an_import_brings_it_to_an_index_of_the_same_points(edge: Ground) -> None:
    untuned = edge.head
    edge.tune()
    exported = maintenance.read_export(maintenance.export(edge.store.snapshot(SCOPE), canonical=False), "file")
    tune(edge.head, Calibration.from_json(untuned.calibration), untuned.fusion_weight, edge.target, silent)
    assert not is_measured(edge.head)
    maintenance.fill(exported, edge.target)
    assert is_measured(edge.head)


def test_repair_leaves_it(edge: Ground) -> None:
    edge.tune()
    maintenance.repair(edge.target)
    assert is_measured(edge.head)


# Two at once, and kills


def test_an_index_that_moved_meanwhile_is_not_tuned(ground: Ground) -> None:
    asked = ground.head
    ground.index("c")
    with pytest.raises(IndexLocked, match="meanwhile: run it again"):
        tune(asked, MEASURED, WEIGHT, ground.target, silent)
    assert ground.head.calibration["questions"] == 0
    assert ground.index("c") == ()


def test_two_at_once_are_one(edge: Ground) -> None:
    with edge.store.publish(SCOPE, edge.embedder.card), pytest.raises(IndexLocked, match="Another process"):
        edge.tune()
    assert edge.head.generation == 1


KILLED = """
import os, sys
from pathlib import Path
from chapterverse.ledger import Ledger
from chapterverse.store.edge import EdgeStore
from chapterverse.indexing.target import Target
from chapterverse_api.ext.evaluation.calibrate_command import tune
from indexing.test_tuning import MEASURED, SCOPE, WEIGHT, CountingEmbedder, silent

class Deadly(Ledger):
    def {method}(self, *arguments):
        os._exit(9)

store = EdgeStore(Path(sys.argv[1]))
ledger = Deadly.on_sqlite(Path(sys.argv[2]))
target = Target(SCOPE, store, ledger, CountingEmbedder(), base_url=store.heads()[0].base_url)
tune(store.heads()[0], MEASURED, WEIGHT, target, silent)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "moved"), [("records", False), ("save", True)])
def test_a_kill_leaves_one_head_or_the_other_whole(edge: Ground, tmp_path: Path, method: str, moved: bool) -> None:
    arguments = [str(tmp_path / "index"), str(tmp_path / "ledger.sqlite")]
    script = KILLED.format(method=method)
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=Path(__file__).parents[1], check=False)
    assert done.returncode == 9
    assert (edge.head.generation, is_measured(edge.head)) == ((2, True) if moved else (1, False))
    edge.embedder.seen.clear()
    edge.index()
    assert edge.embedder.seen == []
    assert is_measured(edge.head) is moved
    assert is_measured(edge.tune())
