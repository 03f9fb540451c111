"""The fake server itself: it accepts the unmodified client, and rejects what the real one rejects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from fakes.qdrant_server import KEY, Fault, QdrantServer

ONE = "00000000-0000-0000-0000-000000000001"
SPARSE = models.SparseVector(indices=[1, 5], values=[1.0, 2.0])


def client(server: QdrantServer) -> QdrantClient:
    return QdrantClient(url=server.url, headers={"api-key": KEY}, check_compatibility=False)


def made(server: QdrantServer) -> QdrantClient:
    found = client(server)
    found.create_collection(
        "c",
        vectors_config={"dense": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"lexical": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    found.create_payload_index("c", "kind", models.PayloadSchemaType.KEYWORD)
    vectors: Any = {"dense": [3.0, 4.0], "lexical": SPARSE}
    found.upsert("c", [models.PointStruct(id=ONE, vector=vectors, payload={"kind": "x", "n": 1})])
    return found


def test_the_client_is_served() -> None:
    with QdrantServer() as server:
        qdrant = made(server)
        assert qdrant.collection_exists("c")
        assert not qdrant.collection_exists("d")
        assert [c.name for c in qdrant.get_collections().collections] == ["c"]
        info = qdrant.get_collection("c")
        assert (info.points_count, set(info.payload_schema)) == (1, {"kind"})
        assert qdrant.count("c").count == 1
        (found,) = qdrant.retrieve("c", [ONE], with_vectors=True)
        assert found.payload == {"kind": "x", "n": 1}
        assert found.vector == {"dense": pytest.approx([0.6, 0.8]), "lexical": SPARSE}
        assert [h.value for h in qdrant.facet("c", "kind").hits] == ["x"]
        qdrant.set_payload("c", {"n": 2}, [ONE])
        qdrant.delete_payload("c", ["kind"], models.Filter())
        assert qdrant.scroll("c")[0][0].payload == {"n": 2}
        qdrant.delete("c", [ONE])
        assert qdrant.count("c").count == 0
        qdrant.delete_collection("c")
        assert server.collections == []


def test_what_is_only_inserted_replaces_nothing() -> None:
    with QdrantServer() as server:
        qdrant = made(server)
        again = [models.PointStruct(id=ONE, vector={}, payload={"n": 9})]
        qdrant.upsert("c", again, update_mode=models.UpdateMode.INSERT_ONLY)
        assert qdrant.scroll("c")[0][0].payload == {"kind": "x", "n": 1}


REFUSED: dict[str, tuple[int, str, str, Any]] = {
    "missing collection": (404, "POST", "/collections/none/points/count", {}),
    "collection that exists": (409, "PUT", "/collections/c", {"vectors": {}}),
    "unknown field": (400, "POST", "/collections/c/points/count", {"filtr": {}}),
    "wrong size": (400, "PUT", "/collections/c/points", {"points": [{"id": ONE, "vector": {"dense": [1.0]}}]}),
    "unknown vector": (400, "PUT", "/collections/c/points", {"points": [{"id": ONE, "vector": {"other": [1.0]}}]}),
    "query of a wrong size": (400, "POST", "/collections/c/points/query", {"query": [1.0], "using": "dense"}),
    "no id": (400, "PUT", "/collections/c/points", {"points": [{"id": "x", "vector": {}}]}),
    "unequal lengths": (
        422,
        "PUT",
        "/collections/c/points",
        {"points": [{"id": ONE, "vector": {"lexical": {"indices": [1, 2], "values": [1.0]}}}]},
    ),
    "no route": (404, "POST", "/collections/c/points/recommend", {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    status, method, path, body = REFUSED[case]
    with QdrantServer() as server:
        made(server)
        assert httpx.request(method, server.url + path, json=body, headers={"api-key": KEY}).status_code == status
        # The engine took no harm.
        assert client(server).count("c").count == 1


def test_a_key_is_asked_for() -> None:
    with QdrantServer() as server:
        for headers in ({}, {"api-key": "other"}):
            with pytest.raises(UnexpectedResponse, match="401"):
                QdrantClient(url=server.url, headers=headers, check_compatibility=False).get_collections()


def test_a_folder_is_taken_up_again(tmp_path: Path) -> None:
    with QdrantServer(tmp_path) as server:
        made(server)
    with QdrantServer(tmp_path) as server:
        (found,) = client(server).scroll("c", with_vectors=True)[0]
        assert found.payload == {"kind": "x", "n": 1}


def test_faults_are_played_one_a_request() -> None:
    with QdrantServer() as server:
        qdrant = made(server)
        server.play(Fault(500), Fault(lost=True), Fault(refuse=True), Fault(cut=True))
        with pytest.raises(UnexpectedResponse, match="500"):
            qdrant.count("c")
        for n in (5, 6, 7):
            with pytest.raises(ResponseHandlingException):
                qdrant.set_payload("c", {"n": n}, [ONE])
        # The one that was refused was not done.
        assert qdrant.scroll("c")[0][0].payload == {"kind": "x", "n": 7}
        server.die_after(1, Fault(lost=True))
        qdrant.set_payload("c", {"n": 8}, [ONE])
        for n in (9, 10):
            with pytest.raises(ResponseHandlingException):
                qdrant.set_payload("c", {"n": n}, [ONE])
        assert not server.survived
        server.revive()
        assert qdrant.scroll("c")[0][0].payload == {"kind": "x", "n": 9}
