from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.scripted import Client
from chapterverse.errors import IndexMissing
from chapterverse.ext.cohere.embedder import CohereEmbedder
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import RetrievalRequest
from chapterverse_api.log import QueryProgress, QueryState
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import failing

QUESTION = "How do I clear the cache?"
WHOLE: list[QueryState] = ["created", "embedding", "searching", "completed"]


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "chapterverse")


def events(caplog: pytest.LogCaptureFixture, name: str = "query_state") -> list[dict[str, Any]]:
    return [line for line in map(json.loads, caplog.messages) if line["event"] == name]


def states(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line["state"] for line in events(caplog)]


def test_a_second_search_does_not_go_back() -> None:
    progress = QueryProgress("q1", logged=False)
    for state in (*WHOLE[:3], *WHOLE[1:]):
        progress.enter(state)
    assert [state for state, _ in progress.history] == WHOLE
    assert progress.attempts == 1
    assert progress.processed_at is not None
    progress.enter("failed")
    assert progress.state == "completed"


def test_a_question_is_processed_once_it_is_completed() -> None:
    progress = QueryProgress("q1", logged=False)
    for state in WHOLE[1:3]:
        progress.enter(state)
        assert progress.processed_at is None
    progress.retry()
    assert (progress.state, progress.attempts, progress.processed_at) == ("embedding", 2, None)


def test_a_retrieval_tells_its_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embedder = quill.Terms()
    client = Client(create_app(quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)))
    found = client.post("/v1/retrieve", {"query": QUESTION, "top_k": 2, "threshold": 0.3}).json()
    assert (found["state"], found["attempts"], found["model"]) == ("completed", 1, "terms")
    assert found["created_at"] <= found["processed_at"]
    assert states(caplog) == WHOLE
    assert {line["query_id"] for line in events(caplog)} == {found["query_id"]}
    assert [line["previous"] for line in events(caplog)] == [None, *WHOLE[:-1]]
    chunk = found["retrieved_chunks"][0]
    assert (chunk["source_domain"], chunk["type"]) == ("quill.example.com", "page")
    assert datetime.fromisoformat(chunk["created_at"]).utcoffset() == timedelta(0)
    (filtered,) = events(caplog, "results_filtered")
    omitted = filtered["omitted_evidence"] + filtered["omitted_limit"]
    assert filtered["candidates"] - omitted == len(found["retrieved_chunks"])


def test_words_alone_are_no_model(tmp_path: Path) -> None:
    found = quill.service(quill.publish(tmp_path)).retrieve(RetrievalRequest(query=QUESTION))
    assert (found.state, found.attempts, found.model) == ("completed", 1, None)


def test_an_embedding_of_the_callers_is_of_the_model_of_the_index(tmp_path: Path) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    found = service.retrieve(RetrievalRequest(embedding=list(embedder.embed_query("cache"))))
    assert (found.attempts, found.model) == (1, "terms")


def test_an_embedder_that_fails_is_an_attempt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    embedder.down = True
    found = service.retrieve(RetrievalRequest(query=QUESTION))
    assert (found.state, found.attempts, found.model) == ("completed", 2, None)
    assert states(caplog) == ["created", "embedding", "failed", "embedding", "searching", "completed"]
    (error,) = events(caplog, "error")
    assert (error["part"], error["query_id"]) == ("embedder", found.query_id)


def test_a_request_that_is_sent_again_is_an_attempt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with CohereServer() as cohere:
        keys = Settings(cohere_url=cohere.url, cohere_api_key=KEY)
        embedder = CohereEmbedder.from_settings(keys)
        settings = quill.publish(tmp_path, {"a.md": "# Cache\n\nClear the cache by hand."}, embedder=embedder)
        service = quill.service(settings, embedder=embedder)
        cohere.play(failing(503))
        found = service.retrieve(RetrievalRequest(query=QUESTION))
        assert (found.attempts, found.model) == (2, "cohere:embed-english-v3.0")
        assert states(caplog) == ["created", "embedding", "failed", "embedding", "searching", "completed"]
        assert not events(caplog, "error")


def test_without_an_index_a_question_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = quill.service(Settings(store=f"edge:{tmp_path}/nothing"))
    with pytest.raises(IndexMissing):
        service.retrieve(RetrievalRequest(query=QUESTION))
    assert states(caplog) == ["created", "failed"]
    for path in ("/v1/chat", "/v1/plans"):
        caplog.clear()
        response = Client(create_app(service)).post(path, {"query": QUESTION})
        assert response.status_code == 503
        assert states(caplog) == ["created", "failed"]
        assert not events(caplog, "response_sent")
        assert len(events(caplog, "error")) == 1


def test_a_plan_logs_what_an_answer_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    page = "# Cache\n\nTo clear the cache:\n\n1. Stop every build.\n2. Run `quill clear`."
    client = Client(create_app(quill.service(quill.publish(tmp_path, {"a.md": page}))))
    assert client.post("/v1/plans", {"query": QUESTION}).status_code == 200
    assert states(caplog) == WHOLE
    (sent,) = events(caplog, "response_sent")
    assert (sent["status"], sent["cited"], sent["level"]) == ("planned", 1, "full")
    assert all(len(events(caplog, name)) == 1 for name in ("retrieval_performed", "results_ranked", "context_prepared"))


def test_a_chats_query_is_its_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answer = quill.ask(quill.service(quill.publish(tmp_path)), QUESTION, thread_id="th-1")
    assert {(e["query_id"], e["turn_id"], e["thread_id"]) for e in events(caplog)} == {
        (answer.turn_id, answer.turn_id, "th-1")
    }
    assert states(caplog) == WHOLE


def test_small_talk_searches_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    quill.ask(quill.service(quill.publish(tmp_path)), "Hello!")
    assert states(caplog) == ["created", "completed"]
    assert not events(caplog, "results_filtered")


@pytest.mark.parametrize("log_answers", [False, True])
def test_an_answer_is_logged_only_where_the_operator_wants_to_read_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, log_answers: bool
) -> None:
    settings = quill.publish(tmp_path).override(log_answers=log_answers)
    answer = quill.ask(quill.service(settings), QUESTION)
    (summary,) = events(caplog, "response_summary")
    assert summary.get("answer") == (answer.response if log_answers else None)
    assert summary["characters"] == len(answer.response)
    assert summary["confirmed"] == sum(s.check == "confirmed" for s in answer.segments)
    assert summary["confidence"] == answer.grounding_confidence
    assert ("cache clean" in caplog.text) == log_answers


def test_what_is_left_out_is_counted_by_stage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answer = quill.ask(quill.service(quill.publish(tmp_path)), QUESTION, top_k=1)
    (filtered,), (prepared,) = events(caplog, "results_filtered"), events(caplog, "context_prepared")
    omitted = sum(count for name, count in filtered.items() if name.startswith("omitted_"))
    assert filtered["candidates"] - omitted == prepared["passages"] == len(answer.source_chunks) == 1
    assert prepared["tokens"] > 0
    assert (prepared["messages"], prepared["summary"], prepared["user_context"]) == (0, False, 0)
