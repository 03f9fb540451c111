"""Our REST and the official client send the same requests, and the server answers like the embedded engine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.record import equals, scope_key, visible_in
from chapterverse.ext.qdrant.server import QdrantRetry, QdrantWriter
from chapterverse.ext.qdrant.snapshot import QdrantSnapshot
from chapterverse.filters import And, Filter, In, Or
from chapterverse.model import Point
from chapterverse.settings import Settings
from chapterverse.store.edge import EdgeStore
from chapterverse.text.lexical import query_vector
from fakes.docs import SCOPE, point, prose
from fakes.qdrant_server import KEY, QdrantServer
from fakes.qdrant_server.stores import DENSE, publish, store_on
from store.test_qdrant_server import client as official_client

MADE = [
    point(f"p{i}", prose(i, 12), dense=(1.0, i % 7, i % 3, 0.5), language="en" if i % 3 else "de", tags=("t",))
    for i in range(80)
]
QUERY = query_vector("chunk index publish webhook anchor")


@pytest.fixture(scope="module")
def server() -> Iterator[QdrantServer]:
    with QdrantServer() as server:
        publish(store_on(server), MADE[:70], embedder=DENSE)
        publish(store_on(server), MADE[60:], [p.chunk.chunk_id for p in MADE[:5]], embedder=DENSE)
        yield server


@pytest.fixture
def snapshot(server: QdrantServer) -> QdrantSnapshot:
    found = store_on(server).snapshot(SCOPE)
    server.history.clear()
    return found


@pytest.fixture
def client(server: QdrantServer) -> QdrantClient:
    return official_client(server)


LIVE = models.Filter.model_validate(visible_in(scope_key(SCOPE), 2))
IDF = models.SearchParams(idf=models.IdfCorpusParams(corpus=LIVE))


def german() -> models.Filter:
    condition = models.FieldCondition(key="language", match=models.MatchAny(any=["de"]))
    return models.Filter(must=[*LIVE.must, condition], must_not=LIVE.must_not)  # type: ignore[misc]


def same(server: QdrantServer) -> list[tuple[str, str, Any]]:
    """Return the requests so far, of which the client must have made one half and we the other."""
    asked = [(r.method, r.path, r.body) for r in server.history]
    assert len(asked) % 2 == 0
    ours, theirs = asked[: len(asked) // 2], asked[len(asked) // 2 :]
    assert ours == theirs
    return ours


def test_a_lexical_query(server: QdrantServer, snapshot: QdrantSnapshot, client: QdrantClient) -> None:
    snapshot.search_lexical(QUERY, 5, In("language", ("de",)))
    found = client.query_points(
        snapshot.collection,
        query=models.SparseVector(indices=list(QUERY.indices), values=list(QUERY.values)),
        using="lexical",
        query_filter=german(),
        search_params=IDF,
        limit=21,
        with_payload=["chunk_id"],
    )
    best = sorted(found.points, key=lambda p: (-p.score, p.payload["chunk_id"] if p.payload else ""))[:5]
    client.retrieve(snapshot.collection, [p.id for p in best], with_payload=True, with_vectors=["lexical"])
    assert len(same(server)) == 2


def test_a_dense_query(server: QdrantServer, snapshot: QdrantSnapshot, client: QdrantClient) -> None:
    snapshot.search_dense((1.0, 2.0, 0.0, 0.0), 80)
    found = client.query_points(
        snapshot.collection,
        query=[1.0, 2.0, 0.0, 0.0],
        using="dense",
        query_filter=LIVE,
        search_params=models.SearchParams(exact=True),
        limit=96,
        with_payload=["chunk_id"],
    )
    best = sorted(found.points, key=lambda p: (-p.score, p.payload["chunk_id"] if p.payload else ""))
    client.retrieve(snapshot.collection, [p.id for p in best], with_payload=True, with_vectors=["lexical"])
    assert len(same(server)) == 2


def test_frequencies(server: QdrantServer, snapshot: QdrantSnapshot, client: QdrantClient) -> None:
    snapshot.document_frequencies(QUERY.indices)
    searches = [
        models.QueryRequest(
            query=models.SparseVector(indices=[term], values=[1.0]),
            using="lexical",
            filter=LIVE,
            params=IDF,
            limit=1,
            with_payload=False,
            with_vector=["lexical"],
        )
        for term in sorted(QUERY.indices)
    ]
    client.query_batch_points(snapshot.collection, searches)
    assert len(same(server)) == 1


def test_counting_and_scrolling(server: QdrantServer, snapshot: QdrantSnapshot, client: QdrantClient) -> None:
    snapshot.is_complete()
    list(snapshot.page("p7.md"))
    client.count(snapshot.collection, LIVE)
    of_page = models.FieldCondition(key="source_file_path", match=models.MatchAny(any=["p7.md"]))
    where = models.Filter(must=[*LIVE.must, of_page], must_not=LIVE.must_not)  # type: ignore[misc]
    client.scroll(snapshot.collection, where, limit=128, with_payload=True, with_vectors=False)
    assert len(same(server)) == 2


def test_the_values_of_a_field(server: QdrantServer, snapshot: QdrantSnapshot, client: QdrantClient) -> None:
    ours = snapshot.values("source_file_path")
    theirs = client.facet(snapshot.collection, "source_file_path", facet_filter=LIVE, limit=16_384, exact=True)
    assert ours == tuple(sorted(hit.value for hit in theirs.hits))
    assert len(ours) == 75
    assert len(same(server)) == 1
    # A generation never changes, so nothing is asked twice.
    assert snapshot.values("source_file_path") == ours
    assert len(server.history) == 2


def test_writes() -> None:
    one, scope = str(uuid.uuid4()), models.Filter.model_validate({"must": [equals("head", "x")]})
    vector: Any = {"lexical": {"indices": [1, 5], "values": [1.0, 2.0]}}
    stored = {"id": one, "vector": vector, "payload": {"head": "x"}}
    config: dict[str, Any] = {
        "vectors": {},
        "sparse_vectors": {"lexical": {"modifier": "idf"}},
        "hnsw_config": {"m": 0},
    }
    with QdrantServer() as server:
        place = QdrantAddress.parse(server.url, Settings(qdrant_api_key=KEY))
        writer = QdrantWriter(place, QdrantRetry())
        client = QdrantClient(url=server.url, headers={"api-key": KEY}, check_compatibility=False)
        writer.check_version()
        writer.create("c", config)
        writer.describe("c")
        writer.index("c", "head", {"type": "keyword", "is_tenant": True})
        writer.upsert("c", [stored])
        writer.upsert("c", [stored], only_new=True)
        writer.set_payload("c", {"died": 2}, {"must": [equals("head", "x")]})
        assert writer.payload("c", one) == {"head": "x", "died": 2}
        writer.delete_payload("c", "died", {"must": [equals("head", "x")]})
        writer.delete("c", {"must": [equals("head", "x")]})
        writer.delete_points("c", [one])
        writer.drop("c")

        strong: Any = {"wait": True, "ordering": models.WriteOrdering.STRONG}
        points = [models.PointStruct(**stored)]
        client.info()
        made = models.CreateCollection.model_validate(config)
        client.http.collections_api.create_collection("c", create_collection=made)
        client.get_collection("c")
        schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        client.create_payload_index("c", "head", schema)
        client.upsert("c", points, **strong)
        client.upsert("c", points, **strong, update_mode=models.UpdateMode.INSERT_ONLY)
        client.set_payload("c", {"died": 2}, scope, **strong)
        client.retrieve("c", [one], consistency=models.ReadConsistencyType.MAJORITY)
        client.delete_payload("c", ["died"], scope, **strong)
        client.delete("c", scope, **strong)
        client.delete("c", [one], **strong)
        client.delete_collection("c")
        assert len(same(server)) == 12
        half = len(server.history) // 2
        for ours, theirs in zip(server.history[:half], server.history[half:], strict=True):
            assert ours.query == {name: value for name, value in theirs.query.items() if name != "timeout"}


def test_our_requests_carry_the_key(server: QdrantServer, snapshot: QdrantSnapshot) -> None:
    snapshot.is_complete()
    assert server.history[-1].headers["api-key"] == KEY


# The embedded store as the reference


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> EdgeStore:
    store = EdgeStore(tmp_path_factory.mktemp("edge"))
    publish(store, MADE[5:], embedder=DENSE)
    return store


WHERES = [
    None,
    In("language", ("de",)),
    And((In("language", ("en", "de")), In("tags", ("t",)))),
    Or((In("language", ("de",)), In("source_file_path", ("p7.md",)))),
    In("tags", ("none",)),
]


@pytest.mark.parametrize("where", WHERES)
def test_searches_find_what_the_embedded_store_finds(
    snapshot: QdrantSnapshot, edge: EdgeStore, where: Filter | None
) -> None:
    reference = edge.snapshot(SCOPE)
    for i in range(12):
        words = query_vector(prose(("question", i), 4))
        for limit in (1, 10, 50):
            ours = snapshot.search_lexical(words, limit, where)
            theirs = reference.search_lexical(words, limit, where)
            assert [h.chunk for h in ours] == [h.chunk for h in theirs]
            assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-5)
            assert [h.lexical.indices for h in ours] == [h.lexical.indices for h in theirs]
        vector = (1.0, i, 3.0, 0.5)
        near, reference_near = snapshot.search_dense(vector, 20, where), reference.search_dense(vector, 20, where)
        assert [h.chunk.chunk_id for h in near] == [h.chunk.chunk_id for h in reference_near]
        assert [h.score for h in near] == pytest.approx([h.score for h in reference_near], abs=1e-5)


def test_points_are_those_of_the_embedded_store(snapshot: QdrantSnapshot, edge: EdgeStore) -> None:
    ours, theirs = list(snapshot.points()), list(edge.snapshot(SCOPE).points())
    assert [p.chunk for p in ours] == [p.chunk for p in theirs]
    assert [p.lexical.indices for p in ours] == [p.lexical.indices for p in theirs]


# Frequencies


def counted(made: list[Point]) -> dict[int, int]:
    out: dict[int, int] = {}
    for p in made:
        for term in p.lexical.indices:
            out[term] = out.get(term, 0) + 1
    return out


def test_frequencies_are_exact_and_asked_for_in_batches() -> None:
    made = [point(f"p{i}", f"everywhere {'often ' if i % 3 else ''}{prose(i, 9)}") for i in range(3000)]
    expected = counted(made)
    terms = [*expected, 1, 2**32, -1]
    with QdrantServer() as server:
        publish(store_on(server), made)
        snapshot = store_on(server).snapshot(SCOPE)
        server.history.clear()
        assert snapshot.document_frequencies(terms) == [expected.get(t, 0) for t in terms]
        assert len(server.history) == -(-(len(expected) + 1) // 64)
        # A generation never changes, so nothing is asked twice.
        assert snapshot.document_frequencies(terms) == [expected.get(t, 0) for t in terms]
        assert len(server.history) == -(-(len(expected) + 1) // 64)


def test_frequencies_over_several_shards_are_counted() -> None:
    with QdrantServer() as server:
        publish(store_on(server, options="?shards=2"), MADE[:20], embedder=DENSE)
        snapshot = store_on(server).snapshot(SCOPE)
        expected = counted(MADE[:20])
        assert snapshot.document_frequencies(list(expected)) == list(expected.values())


def test_quantized_vectors_are_searched_by_their_graph_and_rescored() -> None:
    with QdrantServer() as server:
        publish(store_on(server, options="?quantization=scalar"), MADE[:20], embedder=DENSE)
        (made,) = [r.body for r in server.history if r.method == "PUT" and r.body and "quantization_config" in r.body]
        assert made["quantization_config"]["scalar"]["type"] == "int8"
        store_on(server).snapshot(SCOPE).search_dense((1.0, 2.0, 0.0, 0.0), 3)
        params = [r.body["params"] for r in server.history if r.path.endswith("/points/query")]
        assert params == [{"quantization": {"rescore": True, "oversampling": 2.0}}]


def test_collections_and_their_indexes_are_made_once() -> None:
    with QdrantServer() as server:
        publish(store_on(server), MADE[:1], embedder=DENSE)
        made = sum(r.method == "PUT" and not r.path.endswith("/points") for r in server.history)
        publish(store_on(server), MADE[1:2], embedder=DENSE)
        assert sum(r.method == "PUT" and not r.path.endswith("/points") for r in server.history) == made
        fields = {r.body["field_name"] for r in server.history if r.path.endswith("/index")}
    assert fields >= set(
        "type url chapter_title source_file_path source_domain content_type tags language version scope chunk_index"
        " created_at born died".split()
    )


@pytest.mark.parametrize(("dimensions", "requests"), [(4, 1), (1024, 1), (4096, 4)])
def test_a_request_holds_no_more_than_arrives_in_time(dimensions: int, requests: int) -> None:
    embedder = replace(DENSE, size=dimensions)
    points = [point(f"p{i}", prose(i, 12), dense=(1.0,) + (0.0,) * (dimensions - 1)) for i in range(100)]
    with QdrantServer() as server:
        publish(store_on(server), points, embedder=embedder)
        # The record of the scope is one point.
        written = [r.body["points"] for r in server.history if r.method == "PUT" and r.body and "points" in r.body]
    assert sum(len(points) > 1 for points in written) == requests
