"""Vectors that are made, reused, and saved for an interrupted run."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.embedding import Vector
from chapterverse.errors import ProviderError
from chapterverse.indexing.sync import index, preview
from chapterverse.indexing.target import Target
from chapterverse.indexing.vectors import UnfinishedVectors
from fakes.docs import CountingEmbedder, prose
from indexing.site import Site


class Failing(CountingEmbedder):
    """Fails after so many texts."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        if len(self.seen) >= self._after:
            raise ProviderError("The model failed.", retryable=True)
        return super().embed_documents(texts)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    for i in range(150):
        made.put(f"{i}.md", prose(i))
    return made


def target(site: Site, embedder: CountingEmbedder) -> Target:
    return replace(site.target, embedder=embedder, unfinished=site.folder / "kept" / "unfinished.sqlite")


def cut_short(site: Site) -> None:
    with pytest.raises(ProviderError):
        index(site.sources(), target(site, Failing(96)))


def test_what_was_paid_for_is_not_paid_again(site: Site) -> None:
    cut_short(site)
    embedder = CountingEmbedder()
    told = preview(site.sources(), target(site, embedder))
    done = index(site.sources(), target(site, embedder))
    assert len(embedder.seen) == done.embedded == told.embedded == 54
    assert len(done.diff.embed) == done.total == 150
    assert not (site.folder / "kept" / "unfinished.sqlite").exists()
    clean = CountingEmbedder()
    index(site.sources(), replace(target(site, clean), store=Site(site.folder / "clean").store))
    assert [p.dense for p in site.store.snapshot(site.target.scope).points()] == [
        p.dense for p in Site(site.folder / "clean").store.snapshot(site.target.scope).points()
    ]


def test_a_damaged_vector_is_made_again(site: Site) -> None:
    cut_short(site)
    with sqlite3.connect(site.folder / "kept" / "unfinished.sqlite") as db:
        db.execute("UPDATE vectors SET vector = x'00000000000000000000000000000000' WHERE rowid <= 10")
        db.execute("UPDATE vectors SET vector = 'text' WHERE rowid BETWEEN 11 AND 15")
        db.execute("UPDATE vectors SET vector = NULL WHERE rowid BETWEEN 16 AND 20")
    db.close()
    embedder = CountingEmbedder()
    index(site.sources(), target(site, embedder))
    assert len(embedder.seen) == 54 + 20


@pytest.mark.parametrize("junk", [b"", b"junk" * 1000])
def test_a_file_that_cannot_be_used_costs_only_money(site: Site, junk: bytes) -> None:
    (site.folder / "kept").mkdir()
    (site.folder / "kept" / "unfinished.sqlite").write_bytes(junk)
    embedder = CountingEmbedder()
    assert index(site.sources(), target(site, embedder)).embedded == 150


def test_a_folder_that_cannot_be_made_costs_only_money(site: Site) -> None:
    (site.folder / "kept").write_text("a file")
    assert index(site.sources(), target(site, CountingEmbedder())).embedded == 150


def test_vectors_of_another_model_are_not_taken(site: Site) -> None:
    cut_short(site)
    other = CountingEmbedder("other")
    assert index(site.sources(), target(site, other)).embedded == 150


def test_bits_that_flip_are_noticed(tmp_path: Path) -> None:
    kept = UnfinishedVectors(tmp_path / "x.sqlite")
    vector = array("f", [0.25, 0.5])
    kept.keep({"a": vector})
    assert kept.read({"a"}) == {"a": vector}
    for bit in range(64):
        data = bytearray(vector.tobytes())
        data[bit // 8] ^= 1 << bit % 8
        with sqlite3.connect(tmp_path / "x.sqlite") as db:
            db.execute("UPDATE vectors SET vector = ?", (bytes(data),))
        db.close()
        assert kept.read({"a"}) == {}


def test_what_stands_before_a_damaged_page_is_not_paid_again(tmp_path: Path) -> None:
    kept, file = UnfinishedVectors(tmp_path / "x.sqlite"), tmp_path / "x.sqlite"
    vectors = {f"{number:04}": array("f", [float(number)] * 256) for number in range(1000)}
    kept.keep(vectors)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] + b"\xff" * (len(data) - len(data) // 2))
    found = kept.read(vectors)
    assert 400 < len(found) < 600
    assert all(found[name] == vectors[name] for name in found)


# The cost


def test_a_preview_estimates_what_a_run_costs(site: Site) -> None:
    embedder = CountingEmbedder()
    embedder.price = 0.1
    told, done = (run(site.sources(), target(site, embedder)) for run in (preview, index))
    assert told.tokens == done.tokens > 150 * 30
    assert told.cost == pytest.approx(told.tokens / 1e7)
    assert f"150 embedded for about ${told.cost:.4f}, " in str(done)
    assert index(site.sources(), target(site, embedder)).cost == 0
