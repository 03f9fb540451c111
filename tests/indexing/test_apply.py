"""Which publisher waits, for how long, and what keeps a head from moving."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chapterverse.calibration import Calibration
from chapterverse.errors import IndexFault, IndexLocked, ProviderError, TextTooLong
from chapterverse.indexing.additions import keep_all
from chapterverse.indexing.apply import apply, measured_fields, publishing
from chapterverse.indexing.diff import Diff
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.indexing.vectors import UnfinishedVectors, Vectors
from chapterverse.store import Publication
from fakes.docs import SCOPE, CountingEmbedder
from fakes.instead import instead
from indexing.site import Site, assert_is_a_clean_build


def silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def contested(site: Site, lease_seconds: float, refusals: int, **lock: Any) -> Target:
    """Return a target whose store refuses so many publishers, as one does on which another is publishing."""
    store, refused = site.store, list[int]()

    @contextlib.contextmanager
    def publish(*arguments: Any) -> Iterator[Publication]:
        if len(refused) < refusals:
            refused.append(1)
            raise IndexLocked("Another process is publishing docs.", **lock)
        with store.publish(*arguments) as publication:
            yield publication

    return replace(site.target, store=instead(store, publish=publish, lease_seconds=lease_seconds))


def waits(target: Target) -> list[tuple[str, int, int]]:
    """Return what a publisher says while it waits, without the time of day."""
    told: list[tuple[str, int, int]] = []
    with publishing(target, lambda *stage: told.append(stage)) as publication:
        assert publication.previous is not None
    return told


def test_a_publisher_waits_for_another_one_and_says_until_when(site: Site) -> None:
    site.index()
    told = waits(contested(site, 9.0, 2, seconds=0.01))
    assert [(done, total) for _, done, total in told] == [(0, 9), (0, 9)]
    assert told[0][0] == told[1][0]
    assert told[0][0].startswith("Waiting for another publisher of docs: until ")
    assert told[0][0].endswith(" UTC, if it was killed")


def test_a_publisher_waits_for_what_a_killed_one_may_have_sent(site: Site) -> None:
    site.index()
    ((said, *_),) = waits(contested(site, 9.0, 1, seconds=0.01, killed=True))
    assert said.startswith("Waiting until ")
    assert said.endswith(" UTC for what a killed publisher of docs may have sent")


def test_a_publisher_waits_for_a_lease_and_no_longer(site: Site) -> None:
    site.index()
    told: list[int] = []
    target = contested(site, 0.15, 99, seconds=0.01)
    with pytest.raises(IndexLocked), publishing(target, lambda _, done, __: told.append(done)):
        pass
    assert told == [0, 0]
    with pytest.raises(IndexLocked), publishing(contested(site, 0.0, 1, seconds=0.01), silent):
        pass


def test_who_waited_while_another_one_published_starts_again(site: Site) -> None:
    site.index()
    site.put("a.md", "Other words.")

    def publish_first(stage: str, done: int, total: int) -> None:
        site.index()

    target = contested(site, 9.0, 1, seconds=0.01)
    with (
        pytest.raises(IndexLocked, match="Another process published docs meanwhile: run it again"),
        publishing(target, publish_first),
    ):
        pass
    assert site.store.heads()[0].generation == 2


def test_a_store_that_lost_a_write_publishes_nothing(site: Site) -> None:
    site.index()
    before = site.store.heads()
    target = replace(site.target, base_url="https://moved.example/")
    vectors = Vectors(UnfinishedVectors(target.unfinished))
    for chunks in (5, 7):
        with publishing(target, silent) as publication:
            with pytest.raises(IndexFault) as caught:
                apply(Diff(), vectors, target, publication, silent, chunks=chunks)
            said = f"The store holds 6 chunks of docs instead of {chunks}: nothing was published, run it again."
            assert str(caught.value) == said
    assert site.store.heads() == before


def test_a_calibration_is_measured_from_the_first_question_on(site: Site) -> None:
    site.index()
    head = site.store.heads()[0]
    fitted = Calibration.from_json(head.calibration)
    assert measured_fields(head, site.target.card) == {}
    for questions in (1, 2):
        measured = replace(head, calibration=replace(fitted, questions=questions).to_json(), fusion_weight=0.25)
        fields = {"calibration": measured.calibration, "fusion_weight": 0.25}
        assert measured_fields(measured, site.target.card) == fields
        assert measured_fields(measured, CountingEmbedder("other").card) == {}


class Refusing(CountingEmbedder):
    """Rejects every text, and counts them."""

    def __init__(self) -> None:
        super().__init__(limit=1)
        self.count = 0

    def embed_documents(self, texts: Any) -> Any:
        self.count += 1
        return super().embed_documents(texts)


@pytest.mark.parametrize(("characters", "is_cut"), [(63, False), (64, True)])
def test_a_text_of_less_than_64_characters_is_not_cut_further(site: Site, characters: int, is_cut: bool) -> None:
    site.embedder = embedder = Refusing()
    site.pages.clear()
    site.put("a.md", "x" * characters)
    with pytest.raises(TextTooLong):
        site.index()
    assert (embedder.count > 1) is is_cut


def test_a_page_that_left_with_its_ledger_row_leaves_nothing(site: Site) -> None:
    site.index()
    site.broken.add("b.md")
    report = site.index()
    assert (report.left_out, report.documents) == ({"b.md": "b.md is not a text file."}, frozenset())
    assert (report.price, report.tokens, report.renamed) == (0.0, 0, {})
    assert site.ledger.records(SCOPE).keys() == {"a.md", "b.md", "c.md"}
    site.broken.clear()
    del site.pages["b.md"]
    site.index()
    assert site.ledger.records(SCOPE).keys() == {"a.md", "c.md"}
    assert_is_a_clean_build(site)


# The lease of a run


def leased(site: Site, renew: Callable[[], None]) -> Target:
    """Return a target whose store lends a lease, which a publication renews by `renew`."""
    store = site.store

    @contextlib.contextmanager
    def publish(*arguments: Any) -> Iterator[Publication]:
        with store.publish(*arguments) as publication:
            yield instead(publication, renew=renew)

    return replace(site.target, store=instead(store, publish=publish))


def test_a_run_that_lost_its_lease_pays_for_nothing(site: Site) -> None:
    def lost() -> None:
        raise IndexLocked("Another process took over.")

    with pytest.raises(IndexLocked, match="took over"):
        index(site.sources(), leased(site, lost))
    assert site.embedder is not None
    assert site.embedder.seen == []
    assert site.store.heads() == []


def test_a_lease_is_renewed_while_a_model_takes_long_and_again_after_a_failure(site: Site) -> None:
    beats, renewed = list[int](), threading.Event()

    def renew() -> None:
        if threading.current_thread() is threading.main_thread():
            return
        beats.append(1)
        if len(beats) == 1:
            raise ProviderError("The store can't be reached.")
        renewed.set()

    class Slow(CountingEmbedder):
        def embed_documents(self, texts: Any) -> Any:
            assert renewed.wait(60)
            return super().embed_documents(texts)

    site.embedder = Slow()
    threads = threading.active_count()
    assert index(site.sources(), leased(site, renew)).embedded == 6
    assert len(beats) >= 2
    assert threading.active_count() == threads


# What a run keeps without a source


@pytest.mark.parametrize("is_ledger_lost", [False, True])
def test_what_a_run_keeps_is_known_to_the_next_one(site: Site, is_ledger_lost: bool) -> None:
    site.index()
    pages = dict(site.pages)
    site.pages.clear()
    site.put("d.md", "One file is added.")
    if is_ledger_lost:
        (site.folder / "index" / "ledger.sqlite").unlink()
    report = index(site.sources(), site.target, keep=keep_all)
    assert (report.files.new, report.files.removed, report.total) == (("d.md",), (), 7)
    assert site.ledger.records(SCOPE).keys() == {*pages, "d.md"}
    site.pages = pages
    assert site.index().files.removed == ("d.md",)
    assert_is_a_clean_build(site)
