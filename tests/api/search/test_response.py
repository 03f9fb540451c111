from __future__ import annotations

from pathlib import Path

import pytest

from api import quill
from chapterverse_api.contract import RetrievalRequest
from chapterverse_api.search.ranking import RANK_WEIGHTS
from chapterverse_api.service import Service

QUESTION = "How do I clear the cache?"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    return quill.service(quill.publish(tmp_path_factory.mktemp("index")))


def test_retrieve_returns_chunks_with_their_parts(service: Service) -> None:
    found = service.retrieve(RetrievalRequest(query=QUESTION, top_k=2))
    best = found.retrieved_chunks[0]
    assert best.section_heading == "Clearing the cache"
    assert best.heading_path == ["Caching", "Clearing the cache"]
    assert best.url == f"{quill.BASE}cache/#clearing-the-cache"
    assert best.score > 0.9
    assert {"rank", "fused", "lexical", "dense", *RANK_WEIGHTS} == set(best.components)
    assert list(found.retrieval_stats.timings) == ["search", "rank", "weigh"]
    assert len(found.retrieved_chunks) == 2
    assert found.retrieval_stats.total_candidates > 2
    assert found.retrieval_stats.collection_name == "quill"
    assert found.execution_time > 0


def test_a_threshold_is_one_of_evidence(service: Service) -> None:
    everything = service.retrieve(RetrievalRequest(query=QUESTION, top_k=20)).retrieved_chunks
    strong = service.retrieve(RetrievalRequest(query=QUESTION, top_k=20, threshold=0.9))
    assert [c.chunk_id for c in strong.retrieved_chunks] == [c.chunk_id for c in everything if c.score >= 0.9]
    assert 0 < len(strong.retrieved_chunks) < len(everything)
    assert strong.retrieval_stats.search_threshold == 0.9


def test_retrieve_by_vector_scores_by_nearness(tmp_path: Path) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    vector = list(embedder.embed_query("uninstalling"))
    found = service.retrieve(RetrievalRequest(embedding=vector))
    assert found.retrieved_chunks[0].section_heading == "Uninstalling"
    best = found.retrieved_chunks[0]
    assert best.score == best.components["cosine"] == pytest.approx(0.3333)
