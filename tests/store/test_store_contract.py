"""The contract of every store; a line in `STORES` adds one."""

from __future__ import annotations

import contextlib
import math
import os
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient

from chapterverse.errors import IndexLocked, IndexMismatch, IndexMissing
from chapterverse.ext.qdrant.address import QdrantAddress as QdrantPlace
from chapterverse.filters import EVERYTHING, FIELDS, NOTHING, OPTIONAL, And, Filter, In, Or, parse_filter, resolve
from chapterverse.model import EmbedderCard, Head, Point, Scope, SparseVector
from chapterverse.settings import Settings
from chapterverse.store import Publication, Store, open_store
from chapterverse.text.lexical import document_vector, query_vector
from fakes.docs import SCOPE, point, prose
from fakes.narrowing import corpus, meets, some_filter
from fakes.qdrant_server import KEY, QdrantServer

#: Gives the settings of the store of this name: the same store for the same name, another one for another.
Place: TypeAlias = Callable[[str], Settings]


@contextlib.contextmanager
def edge_stores(folder: Path) -> Iterator[Place]:
    yield lambda name: Settings(store=f"edge:{folder / name}")


@contextlib.contextmanager
def qdrant_stores(_: Path) -> Iterator[Place]:
    with QdrantServer() as server:
        yield lambda name: Settings(store=f"qdrant:{server.url}?collection={name}", qdrant_api_key=KEY)


@contextlib.contextmanager
def s3_stores(folder: Path) -> Iterator[Place]:
    from fakes.s3_server import shared

    with shared().entered(folder) as server:
        bucket = server.bucket()
        yield lambda name: Settings(store=f"s3://{bucket}/{name}")


@contextlib.contextmanager
def server_stores(_: Path) -> Iterator[Place]:
    """A real server, whose collections of this test are removed after it."""
    mine = f"contract-{secrets.token_hex(6)}"
    options = f"{os.environ['QDRANT_URL']}?collection={mine}"
    keyed = Settings(qdrant_api_key=os.environ.get("QDRANT_API_KEY", ""))
    try:
        yield lambda name: keyed.override(store=f"qdrant:{options}-{name}")
    finally:
        place = QdrantPlace.parse(options, keyed)
        client = QdrantClient(place.url, api_key=place.key or None)
        for found in client.get_collections().collections:
            if found.name.startswith(mine):
                client.delete_collection(found.name)


#: Brings up, for one test with a folder of its own, what stores live on, and takes it down again.
STORES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "edge": edge_stores,
    "qdrant": qdrant_stores,
    "s3": s3_stores,
    **({"server": server_stores} if os.environ.get("QDRANT_URL") else {}),
}

NONE = EmbedderCard()
DENSE = EmbedderCard("counting:a", 4, 0, "a")


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with STORES[request.param](tmp_path) as made:
        yield made


@pytest.fixture
def store(place: Place) -> Store:
    return open_store(place("index"))


def next_head(store: Store, publication: Publication, scope: Scope = SCOPE, **fields: Any) -> Head:
    written = publication.preview().head
    live = publication.previous.head.generation if publication.previous else 0
    made = Head(scope.site, scope.version, live + 1, written.pages, written.chunks, "test", languages=written.languages)
    return replace(made, **fields)


def publish(
    store: Store,
    write: Sequence[Point] = (),
    delete: Sequence[str] = (),
    scope: Scope = SCOPE,
    embedder: EmbedderCard = NONE,
) -> Head:
    with store.publish(scope, embedder) as publication:
        publication.write(write)
        publication.delete(delete)
        head = next_head(store, publication, scope, embedder=embedder)
        publication.commit(head)
    return head


def ids(points: Sequence[Point]) -> list[str]:
    return sorted(p.chunk.chunk_id for p in points)


A, B, C, D = (point(name, prose(name)) for name in "abcd")


# Publishing


def test_what_is_published_is_read(store: Store) -> None:
    head = publish(store, [A, B])
    snapshot = store.snapshot(SCOPE)
    assert snapshot.head == head
    assert ids(list(snapshot.points())) == ids([A, B])
    assert (head.generation, head.pages, head.chunks, head.languages) == (1, 2, 2, ("en",))


def test_an_empty_index_can_be_published(store: Store) -> None:
    head = publish(store)
    assert (head.pages, head.chunks, head.languages) == (0, 0, ())
    snapshot = store.snapshot(SCOPE)
    assert list(snapshot.points()) == []
    assert snapshot.search_lexical(query_vector("chunk"), 5) == []
    assert snapshot.document_frequencies([1, 2]) == [0, 0]
    assert snapshot.values("url") == ()


def test_points_come_back_as_they_were(store: Store) -> None:
    odd = point(
        "odd",
        "Ünïcode \x01 日本語 👩‍👩‍👧 \\ \" ' \u2028 {} end",
        dense=(0.6, 0.8, 0.0, 0.0),
        tags=("a", "b c", ""),
        section_heading=None,
        heading_path=(),
        chunk_index=7,
        created_at="2026-01-02T03:04:05Z",
        importance=5,
        anchor_verified=False,
    )
    wordless = replace(point("dots", "…", heading_path=(), dense=(1.0, 0.0, 0.0, 0.0)), lexical=SparseVector((), ()))
    publish(store, [odd, wordless], embedder=DENSE)
    found = {p.chunk.chunk_id: p for p in store.snapshot(SCOPE).points()}
    for made in (odd, wordless):
        got = found[made.chunk.chunk_id]
        assert got.chunk == made.chunk
        assert got.lexical.indices == made.lexical.indices
        assert got.lexical.values == pytest.approx(made.lexical.values, rel=1e-6)
        assert got.dense == pytest.approx(made.dense, abs=1e-6)


def test_points_come_by_id(store: Store) -> None:
    made = [point(f"p{i}", prose(i)) for i in range(40)]
    publish(store, made)
    assert [p.chunk.chunk_id for p in store.snapshot(SCOPE).points()] == ids(made)


def test_a_second_publication_starts_from_the_first(store: Store) -> None:
    publish(store, [A, B])
    head = publish(store, [C], [A.chunk.chunk_id])
    assert head.generation == 2
    assert ids(list(store.snapshot(SCOPE).points())) == ids([B, C])


def test_a_point_is_replaced_by_its_id(store: Store) -> None:
    publish(store, [A, B])
    moved = replace(A, chunk=replace(A.chunk, url="https://docs.example/elsewhere/"))
    publish(store, [moved])
    snapshot = store.snapshot(SCOPE)
    assert {p.chunk.url for p in snapshot.points()} == {moved.chunk.url, B.chunk.url}
    assert snapshot.head.chunks == 2


def test_of_one_id_in_one_call_the_last_counts(store: Store) -> None:
    publish(store, [A, replace(A, chunk=replace(A.chunk, tags=("last",)))])
    (found,) = store.snapshot(SCOPE).points()
    assert found.chunk.tags == ("last",)
    (term, *_) = A.lexical.indices
    assert store.snapshot(SCOPE).document_frequencies([term]) == [1]


def test_deleting_what_is_not_there_is_nothing(store: Store) -> None:
    publish(store, [A], [C.chunk.chunk_id])
    publish(store, [], [C.chunk.chunk_id, C.chunk.chunk_id])
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A])


def test_what_is_written_and_deleted_in_one_publication_is_not_there(store: Store) -> None:
    with store.publish(SCOPE, NONE) as publication:
        publication.write([A, B])
        publication.delete([A.chunk.chunk_id])
        publication.write([C])
        publication.commit(next_head(store, publication))
    assert ids(list(store.snapshot(SCOPE).points())) == ids([B, C])


def test_a_preview_is_what_would_be_published(store: Store) -> None:
    publish(store, [A, B])
    with store.publish(SCOPE, NONE) as publication:
        publication.write([C])
        publication.delete([A.chunk.chunk_id])
        preview = publication.preview()
        assert (preview.head.pages, preview.head.chunks) == (2, 2)
        assert ids(list(preview.points())) == ids([B, C])
        (term, *_) = C.lexical.indices
        assert preview.document_frequencies([term])[0] >= 1
        # And it may go on after a look.
        publication.write([A])
        assert publication.preview().head.chunks == 3
        publication.commit(next_head(store, publication))
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A, B, C])


def test_nothing_is_seen_before_the_commit(store: Store, place: Place) -> None:
    publish(store, [A])
    with store.publish(SCOPE, NONE) as publication:
        publication.write([B])
        publication.delete([A.chunk.chunk_id])
        publication.preview()
        assert ids(list(open_store(place("index")).snapshot(SCOPE).points())) == ids([A])
        assert publication.previous is not None
        assert ids(list(publication.previous.points())) == ids([A])


def test_leaving_without_a_commit_leaves_the_old_index(store: Store) -> None:
    head = publish(store, [A])
    with store.publish(SCOPE, NONE) as publication:
        publication.write([B])
    with contextlib.suppress(RuntimeError), store.publish(SCOPE, NONE) as publication:
        publication.write([C])
        publication.preview()
        raise RuntimeError("on the way")
    assert store.heads() == [head]
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A])
    assert publish(store, [C]).generation == 2


def test_leaving_a_first_publication_leaves_nothing(store: Store) -> None:
    with store.publish(SCOPE, NONE) as publication:
        publication.write([A])
    assert store.heads() == []
    with pytest.raises(IndexMissing):
        store.snapshot(SCOPE)


def test_a_head_that_does_not_follow_the_live_one_is_refused(store: Store) -> None:
    publish(store, [A])
    for generation in (1, 3):
        with store.publish(SCOPE, NONE) as publication:
            publication.write([B])
            head = next_head(store, publication, generation=generation)
            with pytest.raises(IndexLocked):
                publication.commit(head)
    assert store.snapshot(SCOPE).head.generation == 1


def test_another_embedder_starts_from_nothing(store: Store) -> None:
    publish(store, [A, B])
    dense = replace(C, dense=(0.1, 0.2, 0.3, 0.4))
    with store.publish(SCOPE, DENSE) as publication:
        assert publication.previous is not None
        assert ids(list(publication.previous.points())) == ids([A, B])
        publication.write([dense])
        publication.commit(next_head(store, publication, embedder=DENSE))
    snapshot = store.snapshot(SCOPE)
    assert snapshot.head.generation == 2
    assert ids(list(snapshot.points())) == ids([C])
    publish(store, [A])
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A])


def test_an_embedder_of_the_same_space_goes_on(store: Store) -> None:
    publish(store, [replace(A, dense=(0.1, 0.2, 0.3, 0.4))], embedder=DENSE)
    twin = replace(DENSE, name="counting:twin", limit=9)
    publish(store, [replace(B, dense=(0.4, 0.3, 0.2, 0.1))], embedder=twin)
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A, B])


MALFORMED = {
    "unequal lengths": replace(A, lexical=SparseVector((1, 2), (1.0,))),
    "twice the same index": replace(A, lexical=SparseVector((2, 2), (1.0, 1.0))),
    "not ascending": replace(A, lexical=SparseVector((2, 1), (1.0, 1.0))),
    "too large an index": replace(A, lexical=SparseVector((2**32,), (1.0,))),
    "a negative index": replace(A, lexical=SparseVector((-1,), (1.0,))),
    "not a number": replace(A, lexical=SparseVector((1,), (math.nan,))),
    "infinite": replace(A, lexical=SparseVector((1,), (math.inf,))),
    "a dense one where there is none": replace(A, dense=(1.0, 0.0, 0.0, 0.0)),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_vector_is_refused_before_anything_is_written(store: Store, fault: str) -> None:
    publish(store, [B])
    with pytest.raises(IndexMismatch, match="nothing was published"), store.publish(SCOPE, NONE) as publication:
        publication.write([C, MALFORMED[fault]])
    assert ids(list(store.snapshot(SCOPE).points())) == ids([B])


@pytest.mark.parametrize("dense", [None, (1.0,), (1.0, 2.0, 3.0, math.nan), (0.0,) * 5])
def test_a_dense_vector_must_be_of_the_embedders_size(store: Store, dense: tuple[float, ...] | None) -> None:
    with pytest.raises(IndexMismatch, match="nothing was published"), store.publish(SCOPE, DENSE) as publication:
        publication.write([replace(A, dense=dense)])


# Snapshots


def test_a_snapshot_stays_while_newer_ones_are_published(store: Store) -> None:
    publish(store, [A, B])
    old = store.snapshot(SCOPE)
    expected = old.search_lexical(A.lexical, 5)
    for i in range(4):
        publish(store, [point(f"new-{i}", prose(("new", i)))], [A.chunk.chunk_id])
        assert ids(list(old.points())) == ids([A, B])
        assert old.search_lexical(A.lexical, 5) == expected
        assert old.head.generation == 1
    assert store.snapshot(SCOPE).head.generation == 5


def test_two_snapshots_of_one_generation_are_the_same(store: Store, place: Place) -> None:
    publish(store, [A, B])
    one, other = store.snapshot(SCOPE), open_store(place("index")).snapshot(SCOPE)
    assert list(one.points()) == list(other.points())
    del one
    assert ids(list(other.points())) == ids([A, B])


# Scopes

SCOPES = [
    Scope("docs"),
    Scope("docs", "1/2"),
    Scope("docs", ".."),
    Scope("Docs"),
    Scope(""),
    Scope("", "@"),
    Scope("@"),
    Scope("../x"),
    Scope("a/b"),
    Scope("ünï " + "日本語" * 40),
]


def test_every_scope_has_a_head_of_its_own(store: Store) -> None:
    for scope in SCOPES:
        publish(store, [point("a", f"{scope.site} / {scope.version}")], scope=scope)
    assert [head.scope for head in store.heads()] == sorted(SCOPES)
    for scope in SCOPES:
        (found,) = store.snapshot(scope).points()
        assert found.chunk.text == f"{scope.site} / {scope.version}"


def test_scopes_are_published_independently(store: Store) -> None:
    one, other = Scope("docs", "1"), Scope("docs", "2")
    publish(store, [A], scope=one)
    with store.publish(one, NONE) as publication:
        publication.write([B])
        publish(store, [C], scope=other)
        publication.commit(next_head(store, publication, one))
    assert [(h.version, h.generation, h.chunks) for h in store.heads()] == [("1", 2, 2), ("2", 1, 1)]


def test_a_scope_without_a_head_is_missing(store: Store) -> None:
    publish(store, [A])
    with pytest.raises(IndexMissing, match="other"):
        store.snapshot(Scope("other"))
    with pytest.raises(IndexMissing):
        store.snapshot(Scope("docs", "2"))


def test_a_store_that_does_not_exist_is_empty(store: Store) -> None:
    assert store.heads() == []
    assert not store.is_publishing(SCOPE)


# One publisher


def test_a_second_publisher_is_turned_away(store: Store, place: Place) -> None:
    with store.publish(SCOPE, NONE) as publication:
        assert store.is_publishing(SCOPE)
        with pytest.raises(IndexLocked, match="Another process is publishing docs"):
            open_store(place("index")).publish(SCOPE, NONE).__enter__()
        publication.write([A])
        publication.commit(next_head(store, publication))
    assert not store.is_publishing(SCOPE)
    assert publish(open_store(place("index")), [B]).generation == 2


def test_asking_whether_somebody_publishes_never_turns_a_publisher_away(store: Store) -> None:
    publish(store, [A])
    for _ in range(20):
        assert not store.is_publishing(SCOPE)
        with store.publish(SCOPE, NONE):
            assert store.is_publishing(SCOPE)


def test_a_publisher_may_say_at_any_time_that_it_is_at_work(store: Store) -> None:
    with store.publish(SCOPE, NONE) as publication:
        for _ in range(1000):
            publication.renew()
        publication.write([A])
        publication.renew()
        publication.commit(next_head(store, publication))
        publication.renew()
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A])


# Unpublishing


def test_an_unpublished_scope_is_gone_and_can_be_published_again(store: Store) -> None:
    store.unpublish(SCOPE)
    other = Scope("docs", "other")
    publish(store, [A, B])
    publish(store, [C])
    kept = publish(store, [A], scope=other)
    store.unpublish(SCOPE)
    assert (store.heads(), store.head(SCOPE)) == ([kept], None)
    with pytest.raises(IndexMissing):
        store.snapshot(SCOPE)
    assert store.sweep(SCOPE) == 0
    assert ids(list(store.snapshot(other).points())) == ids([A])
    assert publish(store, [D]).generation == 1
    assert ids(list(store.snapshot(SCOPE).points())) == ids([D])
    assert store.is_complete(SCOPE)


def test_nobody_unpublishes_under_a_publisher(store: Store) -> None:
    publish(store, [A])
    with store.publish(SCOPE, NONE), pytest.raises(IndexLocked, match="Another process is publishing docs"):
        store.unpublish(SCOPE)
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A])


# Sweeping


def test_a_sweep_keeps_what_the_head_reaches(store: Store) -> None:
    assert store.sweep(SCOPE) == 0
    publish(store, [A, B])
    publish(store, [C])
    publish(store, [], [A.chunk.chunk_id])
    head = publish(store, [D])
    publish(store, [A], scope=Scope("docs", "other"))
    assert store.sweep(SCOPE) > 0
    assert store.sweep(SCOPE) == 0
    snapshot = store.snapshot(SCOPE)
    assert snapshot.head == head
    assert ids(list(snapshot.points())) == ids([B, C, D])
    assert store.is_complete(SCOPE)
    assert ids(list(store.snapshot(Scope("docs", "other")).points())) == ids([A])
    assert publish(store, [A]).generation == head.generation + 1


def test_a_sweep_forgets_another_embedders_index(store: Store) -> None:
    publish(store, [replace(A, dense=(0.1, 0.2, 0.3, 0.4))], embedder=DENSE)
    publish(store, [B])
    assert store.sweep(SCOPE) > 0
    assert ids(list(store.snapshot(SCOPE).points())) == ids([B])
    assert store.is_complete(SCOPE)


def test_nobody_sweeps_under_a_publisher(store: Store) -> None:
    publish(store, [A])
    with store.publish(SCOPE, NONE) as publication:
        publication.write([B])
        with pytest.raises(IndexLocked, match="Another process is publishing docs"):
            store.sweep(SCOPE)
        publication.commit(next_head(store, publication))
    assert ids(list(store.snapshot(SCOPE).points())) == ids([A, B])


def test_what_was_published_is_intact(store: Store) -> None:
    assert store.is_complete(SCOPE)
    publish(store, [A, B])
    publish(store, [C], [A.chunk.chunk_id])
    assert store.is_complete(SCOPE)


# Search

TEXTS = {f"t{i}": prose(("search", i), 12) for i in range(60)}


def test_lexical_scores_are_idf_times_weights(store: Store) -> None:
    made = [point(name, text) for name, text in TEXTS.items()]
    publish(store, made)
    query = query_vector("chunk index publish webhook anchor")
    frequency = Counter(t for p in made for t in p.lexical.indices)
    idf = {t: math.log((len(made) - frequency[t] + 0.5) / (frequency[t] + 0.5) + 1) for t in query.indices}
    scores = {
        p.chunk.chunk_id: sum(idf[t] * w for t, w in zip(p.lexical.indices, p.lexical.values, strict=True) if t in idf)
        for p in made
    }
    best = sorted(((s, i) for i, s in scores.items() if s), key=lambda pair: (-pair[0], pair[1]))[:10]
    hits = store.snapshot(SCOPE).search_lexical(query, 10)
    assert [h.score for h in hits] == pytest.approx([s for s, _ in best], rel=1e-5)
    assert {h.chunk.chunk_id for h in hits} == {i for _, i in best}
    assert all(h.lexical.indices == document_vector((), h.chunk.text).indices for h in hits)


def test_scores_forget_what_was_deleted(store: Store, place: Place) -> None:
    made = [point(name, text) for name, text in TEXTS.items()]
    publish(store, made)
    publish(store, [point("x", "chunk chunk"), made[0]], ids(made[20:]))
    fresh = open_store(place("fresh"))
    publish(fresh, [*made[:20], point("x", "chunk chunk")])
    query = query_vector("chunk index publish webhook anchor")
    again, clean = (s.snapshot(SCOPE).search_lexical(query, 30) for s in (store, fresh))
    assert [(h.chunk.chunk_id, h.score) for h in again] == [(h.chunk.chunk_id, h.score) for h in clean]


def test_ties_are_cut_by_id(store: Store) -> None:
    copies = [point(f"copy-{i}", "the same chunk of text") for i in range(120)]
    publish(store, [*copies, point("other", "a chunk of something else entirely, and longer")])
    snapshot = store.snapshot(SCOPE)
    for limit in (1, 3, 50, 100, 120):
        hits = snapshot.search_lexical(query_vector("chunk text"), limit)
        assert [h.chunk.chunk_id for h in hits] == ids(copies)[:limit]


def test_dense_ties_are_cut_by_id(store: Store) -> None:
    copies = [point(f"copy-{i}", f"text {i}", dense=(0.5, 0.5, 0.5, 0.5)) for i in range(60)]
    publish(store, copies, embedder=DENSE)
    hits = store.snapshot(SCOPE).search_dense((1.0, 1.0, 1.0, 1.0), 7)
    assert [h.chunk.chunk_id for h in hits] == ids(copies)[:7]
    assert [h.score for h in hits] == pytest.approx([1.0] * 7)


def test_dense_search_is_by_cosine(store: Store) -> None:
    corners = {"x": (1.0, 0.0, 0.0, 0.0), "xy": (2.0, 2.0, 0.0, 0.0), "y": (0.0, 3.0, 0.0, 0.0)}
    publish(store, [point(n, n, dense=v) for n, v in corners.items()], embedder=DENSE)
    hits = store.snapshot(SCOPE).search_dense((5.0, 0.1, 0.0, 0.0), 2)
    assert [h.chunk.text for h in hits] == ["x", "xy"]
    assert hits[1].score == pytest.approx(5.1 / math.sqrt(2) / math.hypot(5.0, 0.1), rel=1e-4)


def test_a_persona_is_there_and_no_search_finds_it(store: Store) -> None:
    pages = [point(f"page-{i}", f"tea and text {i}", dense=(1.0, float(i), 0.0, 0.0)) for i in range(12)]
    spoken = point("spoken", "tea")
    persona = Point(replace(spoken.chunk, type="persona", source_file_path="persona.md"), SparseVector((), ()))
    publish(store, [*pages, persona], embedder=DENSE)
    snapshot = store.snapshot(SCOPE)
    assert snapshot.head.chunks == 13
    assert [c.chunk_id for c in snapshot.page("persona", "type")] == ids([persona])
    assert list(snapshot.points(["persona.md"])) == [persona]
    assert snapshot.vectors([persona.chunk.embed_hash]) == {persona.chunk.embed_hash: None}
    for narrowed in (None, In("type", ("persona", "page"))):
        assert len(snapshot.search_dense((1.0, 0.0, 0.0, 0.0), 50, narrowed)) == 12
        assert len(snapshot.search_lexical(query_vector("tea"), 50, narrowed)) == 12
    tea = query_vector("tea").indices
    assert snapshot.document_frequencies(tea) == [12]
    publish(store, delete=ids([persona]), embedder=DENSE)
    assert store.snapshot(SCOPE).page("persona", "type") == []


def test_a_question_of_another_size_is_refused(store: Store) -> None:
    publish(store, [replace(A, dense=(1.0, 0.0, 0.0, 0.0))], embedder=DENSE)
    with pytest.raises(IndexMismatch, match="4 dimensions, not of 3"):
        store.snapshot(SCOPE).search_dense((1.0, 0.0, 0.0), 5)
    publish(store, [A])
    with pytest.raises(IndexMismatch, match="0 dimensions"):
        store.snapshot(SCOPE).search_dense((1.0, 0.0, 0.0, 0.0), 5)


def test_an_empty_question_finds_nothing(store: Store) -> None:
    publish(store, [A])
    assert store.snapshot(SCOPE).search_lexical(SparseVector((), ()), 5) == []


FILTERED = [
    point("en", "a chunk", language="en", tags=("guide", "new"), chunk_index=0),
    point("de", "ein chunk", language="de", tags=("guide",), chunk_index=1),
    point("fr", "un chunk", language="fr", tags=(), chunk_index=2, content_type="api"),
]


GERMAN, NEW = In("language", ("de",)), In("tags", ("new",))
WHERE: list[tuple[Filter | None, list[str]]] = [
    (None, ["de", "en", "fr"]),
    (GERMAN, ["de"]),
    (In("language", ("de", "fr", "xx")), ["de", "fr"]),
    (NEW, ["en"]),
    (In("chunk_index", (0, 2)), ["en", "fr"]),
    (In("content_type", ("api",)), ["fr"]),
    (In("source_file_path", ("de.md",)), ["de"]),
    (In("url", ("https://docs.example/fr/#fr",)), ["fr"]),
    (In("language", ()), []),
    (In("language", ("DE",)), []),
    (In("language", ("\ud800",)), []),
    (In("language", ("\ud800", "de")), ["de"]),
    (In("chunk_index", (2**70,)), []),
    (And((In("tags", ("guide",)), In("language", ("de", "fr")))), ["de"]),
    (And((GERMAN, NEW)), []),
    (And((GERMAN,)), ["de"]),
    (Or((GERMAN, NEW)), ["de", "en"]),
    (Or((NOTHING, GERMAN)), ["de"]),
    (Or((And((GERMAN, EVERYTHING)), And((GERMAN, NEW)), Or((NOTHING,)))), ["de"]),
    (EVERYTHING, ["de", "en", "fr"]),
    (And((EVERYTHING, NEW)), ["en"]),
    (Or(()), []),
    (And((Or(()), GERMAN)), []),
    (In("url", (*(f"https://docs.example/{n}/" for n in range(9999)), "https://docs.example/fr/#fr")), ["fr"]),
]


def test_filters(store: Store) -> None:
    publish(store, [replace(p, dense=(1.0, 0.0, 0.0, 0.0)) for p in FILTERED], embedder=DENSE)
    snapshot = store.snapshot(SCOPE)
    for where, expected in WHERE:
        by_words = snapshot.search_lexical(query_vector("chunk"), 10, where)
        by_meaning = snapshot.search_dense((1.0, 1.0, 0.0, 0.0), 10, where)
        assert sorted(h.chunk.language for h in by_words) == expected, where
        assert sorted(h.chunk.language for h in by_meaning) == expected, where


def test_a_filter_finds_what_a_look_at_every_chunk_finds(store: Store) -> None:
    made = corpus(150)
    publish(store, made)
    snapshot = store.snapshot(SCOPE)
    for seed in range(60):
        filters = some_filter(random.Random(seed), [p.chunk for p in made])
        hits = snapshot.search_lexical(query_vector("chunk"), len(made), resolve(parse_filter(filters), snapshot))
        expected = {p.chunk.chunk_id for p in made if meets(filters, p.chunk)}
        assert {h.chunk.chunk_id for h in hits} == expected, filters


def test_the_values_of_a_field(store: Store) -> None:
    made = corpus(80)
    publish(store, made)
    old = store.snapshot(SCOPE)
    publish(store, [B], ids(made[5:]))
    for snapshot, held in ((old, made), (store.snapshot(SCOPE), [*made[:5], B])):
        for field in FIELDS:
            values = (getattr(p.chunk, field) for p in held)
            distinct = {v for one in values for v in (one if isinstance(one, tuple) else [one])}
            # A field that is not stated is absent.
            distinct -= {""} if field in OPTIONAL else set()
            assert snapshot.values(field) == tuple(sorted(distinct)), field


def test_a_field_may_have_more_values_than_there_are_chunks(store: Store) -> None:
    tags = tuple(f"tag-{n:05}" for n in range(20_000))
    publish(store, [point("a", "a chunk", tags=tags), B])
    snapshot = store.snapshot(SCOPE)
    assert snapshot.values("tags") == tags
    (hit,) = snapshot.search_lexical(
        query_vector("chunk"), 5, resolve(parse_filter({"tags": {"$prefix": "tag-1"}}), snapshot)
    )
    assert hit.chunk.tags == tags


def test_a_filter_does_not_change_the_weight_of_words(store: Store) -> None:
    publish(store, FILTERED)
    snapshot = store.snapshot(SCOPE)
    everywhere = {h.chunk.chunk_id: h.score for h in snapshot.search_lexical(query_vector("chunk"), 10)}
    (german,) = snapshot.search_lexical(query_vector("chunk"), 10, GERMAN)
    assert german.score == everywhere[german.chunk.chunk_id]


# Looking up


def test_a_page_comes_in_reading_order(store: Store) -> None:
    parts = [point(f"part-{i}", prose(i), chunk_index=i, source_file_path="long.md") for i in range(25)]
    publish(store, [*reversed(parts), A])
    snapshot = store.snapshot(SCOPE)
    assert [c.chunk_index for c in snapshot.page("long.md")] == list(range(25))
    assert snapshot.page("none.md") == []
    assert snapshot.head.pages == 2


def test_points_of_some_pages(store: Store) -> None:
    publish(store, [A, B, C])
    snapshot = store.snapshot(SCOPE)
    assert ids(list(snapshot.points(["a.md", "c.md", "none.md"]))) == ids([A, C])
    assert list(snapshot.points([])) == []
    assert list(snapshot.points(f"{i}.md" for i in "b")) == [next(iter(snapshot.points(["b.md"])))]


def test_vectors_by_embed_hash(store: Store) -> None:
    made = [point(n, f"text {n}", dense=(0.6, 0.8, 0.0, 0.0)) for n in "abc"]
    publish(store, made, embedder=DENSE)
    wanted = [p.chunk.embed_hash for p in made[:2]]
    found = store.snapshot(SCOPE).vectors([*wanted, "f" * 64])
    assert found.keys() == set(wanted)
    assert all(v == pytest.approx((0.6, 0.8, 0.0, 0.0), abs=1e-6) for v in found.values())
    assert store.snapshot(SCOPE).vectors([]) == {}
    publish(store, [A])
    assert store.snapshot(SCOPE).vectors([A.chunk.embed_hash]) == {A.chunk.embed_hash: None}


def test_thousands_of_points(store: Store) -> None:
    made = [point(f"p{i}", prose(i, 6), language="en" if i % 2 else "de") for i in range(2300)]
    head = publish(store, made)
    assert (head.pages, head.chunks, head.languages) == (2300, 2300, ("de", "en"))
    snapshot = store.snapshot(SCOPE)
    assert [p.chunk.chunk_id for p in snapshot.points()] == ids(made)
    assert len(snapshot.vectors({p.chunk.embed_hash for p in made})) == len({p.chunk.embed_hash for p in made})
    head = publish(store, [], ids(made)[:2000])
    assert (head.pages, head.chunks) == (300, 300)


# Any history

PAGES = st.integers(0, 9)
STEPS = st.lists(
    st.tuples(st.lists(st.tuples(PAGES, st.integers(0, 3)), max_size=6), st.lists(PAGES, max_size=4)), max_size=5
)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_history_is_what_a_dictionary_would_hold(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[tuple[int, int]], list[int]]]
) -> None:
    for stores in STORES.values():
        with stores(tmp_path_factory.mktemp("history")) as place:
            store = open_store(place("index"))
            model: dict[str, Point] = {}
            for writes, deletes in steps:
                # The id is the page's, so that a page written again is replaced.
                variants = [(NAMES[n], VARIANTS[n, v]) for n, v in writes]
                made = [replace(p, chunk=replace(p.chunk, chunk_id=name)) for name, p in variants]
                gone = [NAMES[n] for n in deletes]
                publish(store, made, gone)
                model.update({p.chunk.chunk_id: p for p in made})
                model = {i: p for i, p in model.items() if i not in gone}
                holds(store, model)


def holds(store: Store, model: dict[str, Point]) -> None:
    snapshot = store.snapshot(SCOPE)
    assert {p.chunk.chunk_id: p.chunk for p in snapshot.points()} == {i: p.chunk for i, p in model.items()}
    counts = Counter(t for p in model.values() for t in p.lexical.indices)
    every = sorted({t for p in VARIANTS.values() for t in p.lexical.indices})
    assert snapshot.document_frequencies(every) == [counts[t] for t in every]
    assert snapshot.head.pages == len({p.chunk.source_file_path for p in model.values()})


NAMES = [point(f"n{i}", "").chunk.chunk_id for i in range(10)]
VARIANTS = {
    (n, v): point(f"n{n}", prose((n, v), 8), source_file_path=f"{n % 3}.md") for n in range(10) for v in range(4)
}


@pytest.mark.parametrize("uri", ["", "edge:", "edge", "nowhere:place", "file:///tmp", "s3:", "s3:bucket"])
def test_an_address_that_no_store_has(uri: str) -> None:
    from chapterverse.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=r"CHAPTERVERSE_STORE is |There is no store "):
        open_store(Settings(store=uri))


def test_a_head_is_found_by_its_scope(store: Store) -> None:
    other = Scope(SCOPE.site, "2.0")
    assert store.head(SCOPE) is None
    head = publish(store, [A])
    assert (store.head(SCOPE), store.head(other)) == (head, None)
