"""Garbage collection: retired generations after a grace period, unused collections, damage."""

from __future__ import annotations

import pytest

from chapterverse.errors import IndexCorrupt, IndexFault, IndexMismatch, IndexMissing
from chapterverse.model import Head, Scope
from fakes.clocks import Clock
from fakes.docs import SCOPE, point, prose
from fakes.qdrant_server import QdrantServer
from fakes.qdrant_server.stores import DENSE, NONE, publish, store_on, texts

A, B, C, D = (point(name, prose(name)) for name in "abcd")
DEEP = point("deep", "deep", dense=(1.0, 2.0, 3.0, 4.0))


def test_a_retired_generation_is_read_within_its_grace_and_gone_after_it() -> None:
    clock = Clock()
    with QdrantServer() as server:
        store = store_on(server, clock)
        publish(store, [A, B])
        old = store.snapshot(SCOPE)
        publish(store, [C], [A.chunk.chunk_id])
        clock.now += 899
        publish(store, [D])
        assert [p.chunk for p in old.points()] == sorted([A.chunk, B.chunk], key=lambda c: c.chunk_id)
        assert len(server.points("docs")) == 4
        clock.now += 2
        publish(store, [], [D.chunk.chunk_id])
        # A died in the second generation, and who could hold the first was given time; D may still be held.
        assert {p["payload"]["chunk_id"] for p in server.points("docs")} == {p.chunk.chunk_id for p in (B, C, D)}
        assert texts(store) == {B.chunk.text, C.chunk.text}


def test_a_reader_that_outlived_the_grace_is_told_so() -> None:
    clock = Clock()
    with QdrantServer() as server:
        store = store_on(server, clock)
        publish(store, [A, B])
        points = store.snapshot(SCOPE).points()
        ids = store.snapshot(SCOPE)._ids(None)
        publish(store, [], [A.chunk.chunk_id])
        clock.now += 1000
        publish(store, [C])
        with pytest.raises(IndexFault, match="is gone by now: ask again"):
            store.snapshot(SCOPE)._retrieve([point for _, point in ids])
        assert len(list(points)) == 1


def test_the_collection_of_a_former_embedder_goes_after_the_grace() -> None:
    clock = Clock()
    with QdrantServer() as server:
        store = store_on(server, clock)
        publish(store, [DEEP], embedder=DENSE)
        (dense,) = (name for name in server.collections if name.startswith("docs-"))
        old = store.snapshot(SCOPE)
        publish(store, [A])
        assert [h.chunk.text for h in old.search_dense((1.0, 2.0, 3.0, 4.0), 3)] == ["deep"]
        clock.now += 1000
        publish(store, [B])
        assert dense not in server.collections
        with pytest.raises(IndexMissing, match=f"There is no collection {dense}"):
            old.search_dense((1.0, 2.0, 3.0, 4.0), 3)
        assert texts(store) == {A.chunk.text, B.chunk.text}


def test_a_collection_that_another_version_needs_stays() -> None:
    clock = Clock()
    with QdrantServer() as server:
        store = store_on(server, clock)
        publish(store, [DEEP], embedder=DENSE)
        publish(store, [], embedder=DENSE, scope=Scope("docs", "empty"))
        publish(store, [A])
        store.sweep(SCOPE)
        assert len(server.collections) == 3
        assert store.is_complete(Scope("docs", "empty"))


def test_back_to_a_former_embedder_within_the_grace() -> None:
    clock = Clock()
    with QdrantServer() as server:
        store = store_on(server, clock)
        publish(store, [A, B])
        first = store.snapshot(SCOPE)
        publish(store, [DEEP], embedder=DENSE)
        second = store.snapshot(SCOPE)
        publish(store, [B, C])
        assert texts(store) == {B.chunk.text, C.chunk.text}
        assert {p.chunk.text for p in first.points()} == {A.chunk.text, B.chunk.text}
        assert {p.chunk.text for p in second.points()} == {"deep"}


def damage(server: QdrantServer, name: str = "docs") -> None:
    server.send("POST", f"/collections/{name}/points/delete", {"points": [server.points(name)[0]["id"]]})


def test_a_damaged_index_is_found_and_replaced_as_a_whole() -> None:
    with QdrantServer() as server:
        store = store_on(server)
        publish(store, [A, B])
        publish(store, [C])
        damage(server)
        assert not store.is_complete(SCOPE)
        with store.publish(SCOPE, NONE) as publication:
            assert publication.previous is None
        # Left without a commit: as it was.
        assert len(texts(store)) == 2
        head = publish(store, [A, B, D])
        assert head.generation == 1
        assert store.is_complete(SCOPE)
        assert texts(store) == {A.chunk.text, B.chunk.text, D.chunk.text}
        assert publish(store, [C]).generation == 2
        assert len(texts(store)) == 4


def test_a_collection_that_somebody_deleted_is_made_again() -> None:
    with QdrantServer() as server:
        store = store_on(server)
        publish(store, [A])
        server.send("DELETE", "/collections/docs")
        assert not store.is_complete(SCOPE)
        with pytest.raises(IndexMissing, match=r"There is no collection docs on 127\.0\.0\.1: index the site again"):
            list(store.snapshot(SCOPE).points())
        publish(store, [B])
        assert texts(store) == {B.chunk.text}


def test_a_count_that_is_not_the_plans_is_never_published() -> None:
    with QdrantServer() as server:
        store = store_on(server)
        publish(store, [A])
        with store.publish(SCOPE, NONE) as publication:
            publication.write([B])
            with pytest.raises(IndexFault, match="holds 2 chunks of docs where 3 were written: nothing was published"):
                publication.commit(Head("docs", "", 2, 2, 3, "test"))
        assert texts(store) == {A.chunk.text}


def test_a_head_that_nobody_can_read_is_said_to_be_so() -> None:
    for fields, error in (({"epoch": "x"}, IndexCorrupt), ({"head": {"format": 99}}, IndexMismatch)):
        with QdrantServer() as server:
            store = store_on(server)
            publish(store, [A])
            (record,) = server.points("chapterverse_heads")
            body = {"payload": fields, "points": [record["id"]]}
            server.send("POST", "/collections/chapterverse_heads/points/payload", body)
            with pytest.raises(error):
                store.snapshot(SCOPE)
            with pytest.raises(error):
                publish(store, [B])
