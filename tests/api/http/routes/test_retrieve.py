from __future__ import annotations

import json
from pathlib import Path

import pytest

from api import quill
from api.scripted import FOUND, Client, Scripted, error_of
from chapterverse.errors import IndexCorrupt
from chapterverse.indexing import sync
from chapterverse.indexing.target import Target
from chapterverse.readers.built_site import read_site
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import RetrievalRequest, dump


def test_passages_are_returned() -> None:
    service = Scripted()
    response = Client(create_app(service)).post("/v1/retrieve", {"query": "a", "filters": {"tags": ["x", "y"]}})
    assert (response.status_code, response.json()) == (200, dump(FOUND))
    assert service.asked == [RetrievalRequest.model_validate({"query": "a", "filters": {"tags": ["x", "y"]}})]


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


def test_images_tables_and_what_a_page_states_come_with_its_passage(tmp_path: Path) -> None:
    stated = {"@type": "Product", "name": "Harbor lamp"}
    page = (
        f'<html lang="en"><head><script type="application/ld+json">{json.dumps(stated)}</script></head><main>'
        '<h1 id="lamp">Harbor lamp</h1><p>The lamp at the pier. <img src="lamp.png" alt="A lamp" title="By night"></p>'
        "<table><tr><th>Part</th><th>Watts</th></tr><tr><td>bulb</td><td>60</td></tr></table></main></html>"
    )
    built = tmp_path / "site"
    built.mkdir()
    (built / "lamp.html").write_text(page, encoding="utf-8")
    settings = Settings(store=f"edge:{tmp_path / 'index'}")
    reading = read_site(built, quill.BASE)
    sync.index(reading.sources, Target.open(settings, quill.SCOPE, reading.base_url))
    client = Client(create_app(quill.service(settings)))
    (found,) = client.post("/v1/retrieve", {"query": "lamp"}).json()["retrieved_chunks"]
    assert found["images"] == [{"url": f"{quill.BASE}lamp.png", "alt": "A lamp", "title": "By night"}]
    assert found["tables"] == [{"name": "Harbor lamp", "headers": ["Part", "Watts"], "rows": [["bulb", "60"]]}]
    assert found["structured_data"] == [stated]
    # Only the head of the page differs.
    (built / "lamp.html").write_text(page.replace("Harbor lamp", "Pier lamp", 1), encoding="utf-8")
    sync.index(read_site(built, quill.BASE).sources, Target.open(settings, quill.SCOPE, reading.base_url))
    found = Client(create_app(quill.service(settings))).post("/v1/retrieve", {"query": "lamp"}).json()
    assert found["retrieved_chunks"][0]["structured_data"] == [{**stated, "name": "Pier lamp"}]
