"""`chapterverse trace`, over a real index and the installed service."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse.cli import main

QUESTION = "How do I claer the cache?"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(quill.publish(tmp_path_factory.mktemp("traced")).store)


def run(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0, err.getvalue()
    return out.getvalue()


def traced(store: str, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("trace", *arguments, "--store", store, "--json"))
    return document


def test_it_is_the_answer_of_ask(store: str) -> None:
    """The same pipeline, so the same sources, segments and status."""
    asked = json.loads(run("ask", QUESTION, "--store", store, "--json"))
    response = traced(store, QUESTION)["response"]
    for own in ("turn_id", "timestamp", "execution_time", "signature"):
        asked.pop(own), response.pop(own)
    assert response == asked


def test_each_candidate_is_a_source_or_left_out(store: str) -> None:
    document = traced(store, QUESTION)
    candidates = document["retrieval"]["candidates"]
    assert all((one["source"] is None) != (one["omitted"] is None) for one in candidates)
    sources = {one["source"] for one in candidates if one["source"]}
    assert sources == {source["id"] for source in document["response"]["source_chunks"]}
    ranks = [one["rank"] for one in candidates]
    assert ranks == sorted(ranks, reverse=True)
    for one in candidates:
        assert sum(one["contributions"].values()) == pytest.approx(one["rank"], abs=0.002)


def test_a_correction_the_states_and_the_sentences_are_told(store: str) -> None:
    document = traced(store, QUESTION)
    assert document["response"]["searched_as"]["query"] == "How do I clear the cache?"
    assert document["retrieval"]["searched"] == "How do I clear the cache?"
    assert [step["state"] for step in document["states"]] == ["created", "embedding", "searching", "completed"]
    assert document["query_id"] == document["response"]["turn_id"]
    checks = document["sentences"]
    assert checks
    assert {"text", "claimed", "citations", "check", "outcome", "probability"} == checks[0].keys()
    assert {check["check"] for check in checks} == {"confirmed"}


def test_the_synonyms_that_were_searched_stand_by_their_words(store: str) -> None:
    question = "How do I get rid of the cache?"
    assert "remov" in traced(store, question)["retrieval"]["synonyms"]["get rid"]
    assert "get rid: " in run("trace", question, "--store", store)
    assert traced(store, "What is a cache?")["retrieval"]["synonyms"] == {}


def test_for_people_it_is_a_table(store: str) -> None:
    text = run("trace", QUESTION, "--store", store)
    assert "corrected to     How do I clear the cache?" in text
    assert "created → embedding → searching → completed" in text
    assert "Caching › Clearing the cache" in text
    assert "left out: " in text
    assert "fused +" in text
    assert "confirmed    1.00" in text


def test_a_refusal_says_why(store: str) -> None:
    question = "Who won the world cup in football?"
    document = traced(store, question)
    assert document["response"]["status"] == "not_in_docs"
    assert document["sentences"] == []
    assert {one["omitted"] for one in document["retrieval"]["candidates"]} <= {"verdict"}
    assert "No sentence was checked." in run("trace", question, "--store", store)
    assert "Nothing was searched." in run("trace", "Hello!", "--store", store)


def test_a_follow_up_says_on_what(store: str, tmp_path: Path) -> None:
    history = tmp_path / "history.json"
    history.write_text(json.dumps([{"role": "user", "content": "How do I install Quill?"}]))
    text = run("trace", "and on Windows?", "--history", str(history), "--store", store)
    assert "follows up on    How do I install Quill?" in text


def test_what_was_searched_and_what_the_docs_lack(store: str) -> None:
    assert "words searched   cache" in run("trace", "what is a cache", "--store", store)
    text = run("trace", "How do I zubrify the cache?", "--store", store)
    assert "not in the docs  zubrify" in text
    assert "words searched" not in text


def test_the_parts_of_a_side_of_a_comparison_make_its_rank(store: str) -> None:
    document = traced(store, "What is the difference between clearing the cache and installing Quill?")
    candidates = document["retrieval"]["candidates"]
    assert any("side" in one["contributions"] for one in candidates)
    for one in candidates:
        assert sum(one["contributions"].values()) == pytest.approx(one["rank"], abs=0.002)


def test_nothing_found_is_no_table(store: str) -> None:
    text = run("trace", "Zubrify?", "--store", store)
    assert "0 candidates, 0 sources" in text
    assert "evidence  source" not in text
