"""A site synchronized with a server: the same points as in the embedded store, nothing paid for twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.ledger import Ledger
from chapterverse.model import Point
from chapterverse.store import Store
from chapterverse.store.edge import EdgeStore
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder, page, prose, section, source
from fakes.qdrant_server import QdrantServer
from fakes.qdrant_server.stores import store_on

SITES: list[dict[str, list[str]]] = [
    {"a.md": ["one", "two"], "b.md": ["three"], "c.md": ["four", "five"]},
    {"a.md": ["one", "two", "six"], "b.md": ["three"]},
    {"moved.md": ["one", "two", "six"], "b.md": ["seven"]},
    {"moved.md": ["six", "one", "two"], "b.md": ["seven"], "d.md": ["eight"]},
]


def target(store: Store, folder: Path, embedder: CountingEmbedder | None) -> Target:
    return Target(SCOPE, store, Ledger.on_sqlite(folder / "ledger.sqlite"), embedder, base_url=BASE_URL)


def sources(site: dict[str, list[str]]) -> list[Any]:
    return [source(page(path, *(section(s, prose(s, 30)) for s in names))) for path, names in site.items()]


def canonical(store: Store) -> list[Point]:
    found = store.snapshot(SCOPE).points()
    return [
        Point(replace(p.chunk, timestamp="", created_at=""), p.lexical, p.dense and tuple(round(x, 5) for x in p.dense))
        for p in found
    ]


def test_a_site_is_kept_true(tmp_path: Path) -> None:
    with QdrantServer() as server:
        store, embedder = store_on(server), CountingEmbedder()
        for n, site in enumerate(SITES):
            report = index(sources(site), target(store, tmp_path, embedder))
            assert report.generation == n + 1
            clean = EdgeStore(tmp_path / f"clean-{n}")
            index(sources(site), target(clean, tmp_path / f"clean-{n}", CountingEmbedder()))
            assert canonical(store) == canonical(clean)
            ours, theirs = store.snapshot(SCOPE).head, clean.snapshot(SCOPE).head
            assert (ours.pages, ours.chunks, ours.calibration) == (theirs.pages, theirs.chunks, theirs.calibration)
        assert len(embedder.seen) == len(set(embedder.seen)) == 8


def test_a_build_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    with QdrantServer() as server:
        index(sources(SITES[0]), target(store_on(server), tmp_path, None))
        server.history.clear()
        report = index(sources(SITES[0]), target(store_on(server), tmp_path, None))
        assert report.generation == 1
        assert not any(r.writes for r in server.history)
        assert len(server.history) <= 4


def test_a_damaged_index_is_built_again(tmp_path: Path) -> None:
    with QdrantServer() as server:
        store = store_on(server)
        index(sources(SITES[0]), target(store, tmp_path, None))
        lost = [server.points("docs")[0]["id"]]
        server.send("POST", "/collections/docs/points/delete", {"points": lost})
        report = index(sources(SITES[0]), target(store, tmp_path, None))
        assert "was damaged" in report.warnings[0]
        assert store.is_complete(SCOPE)
        assert store.snapshot(SCOPE).head.chunks == 5


def test_another_embedder_takes_over(tmp_path: Path) -> None:
    with QdrantServer() as server:
        store = store_on(server)
        for embedder in (None, CountingEmbedder("one"), CountingEmbedder("two", 8), None):
            index(sources(SITES[0]), target(store, tmp_path, embedder))
            snapshot = store.snapshot(SCOPE)
            assert snapshot.head.embedder.size == (embedder.card.size if embedder else 0)
            assert len(list(snapshot.points())) == 5
