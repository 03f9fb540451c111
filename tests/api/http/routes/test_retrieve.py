from __future__ import annotations

from pathlib import Path

import pytest

from api import quill
from api.scripted import FOUND, Client, Scripted, error_of
from chapterverse.errors import IndexCorrupt
from chapterverse_api.app import create_app
from chapterverse_api.contract import RetrievalRequest, dump


def test_passages_are_returned() -> None:
    service = Scripted()
    response = Client(create_app(service)).post("/v1/retrieve", {"query": "a", "filters": {"tags": ["x", "y"]}})
    assert (response.status_code, response.json()) == (200, dump(FOUND))
    assert service.asked == [RetrievalRequest(query="a", filters={"tags": ["x", "y"]})]


def test_a_damaged_index_is_503() -> None:
    response = Client(create_app(Scripted([IndexCorrupt("/srv/x")]))).post("/v1/retrieve", {"embedding": [0.5]})
    assert (response.status_code, error_of(response)["code"]) == (503, "index_unavailable")
    assert "/srv" not in response.text


def test_it_is_told_what_each_stage_took_and_what_a_score_is_made_of(tmp_path: Path) -> None:
    client = Client(create_app(quill.service(quill.publish(tmp_path))))
    found = client.post("/v1/retrieve", {"query": "How do I clear the cache?", "top_k": 20}).json()
    timings = found["retrieval_stats"]["timings"]
    assert list(timings) == ["search", "rank", "weigh"]
    assert 0 <= sum(timings.values()) <= found["execution_time"] + 1e-5
    ranks = [chunk["components"]["rank"] for chunk in found["retrieved_chunks"]]
    assert ranks == sorted(ranks, reverse=True)
    assert len(ranks) == len({chunk["text"] for chunk in found["retrieved_chunks"]}) == 3


def test_an_empty_index_gives_an_empty_well_formed_result(tmp_path: Path) -> None:
    client = Client(create_app(quill.service(quill.publish(tmp_path, {"empty.md": "\n"}))))
    response = client.post("/v1/retrieve", {"query": "cache"})
    assert response.status_code == 200
    assert response.json()["retrieved_chunks"] == []
    assert response.json()["retrieval_stats"]["total_candidates"] == 0


@pytest.mark.parametrize(
    "body",
    [{"top_k": 0}, {"top_k": 21}, {"top_k": "five"}, {"threshold": 2}, {"threshold": -0.1}, {"embedding": [1.0]}],
)
def test_what_is_out_of_contract_is_422(body: dict[str, object]) -> None:
    response = Client(create_app(Scripted())).post("/v1/retrieve", {"query": "cache", **body})
    assert (response.status_code, error_of(response)["code"]) == (422, "out_of_contract")


def test_timings_stand_in_the_contract() -> None:
    schemas = Client(create_app(Scripted())).get("/openapi.json").json()["components"]["schemas"]
    timings = schemas["RetrievalStats"]["properties"]["timings"]
    assert (timings["type"], timings["additionalProperties"]) == ("object", {"type": "number"})
    assert schemas["RetrievedChunk"]["properties"]["components"]["additionalProperties"] == {"type": "number"}
