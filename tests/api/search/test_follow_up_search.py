from __future__ import annotations

from dataclasses import replace

import pytest

from api import quill
from chapterverse.store import Snapshot, only_scope, open_store
from chapterverse_api.conversation.detection import ContextualQuery, FollowUpVerdict, detect_follow_up
from chapterverse_api.search.results import Retrieval, merge_retrievals
from chapterverse_api.search.site_search import SearchRequest, retrieve, search_follow_up

CACHE = "How do I clear the cache of old renders?"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = open_store(quill.publish(tmp_path_factory.mktemp("index")))
    return store.snapshot(only_scope(store))


def searched(
    question: str, snapshot: Snapshot, earlier: str = CACHE, verdict: FollowUpVerdict | None = None
) -> tuple[Retrieval, ContextualQuery | None]:
    query = ContextualQuery(f"{earlier}\n{question}", earlier) if earlier else None
    found = search_follow_up(
        question,
        verdict or detect_follow_up(question, ["en"]),
        lambda: query,
        lambda text: retrieve(snapshot, None, SearchRequest(text)),
    )
    return found, found.contextual_query


def test_a_question_that_stands_alone_is_searched_as_if_nothing_was_said(snapshot: Snapshot) -> None:
    for question in ("How do I uninstall Quill?", "uninstalling"):
        found, leant = searched(question, snapshot)
        assert leant is None
        assert found.candidates == retrieve(snapshot, None, SearchRequest(question)).candidates


def test_what_points_back_is_searched_behind_the_last_question(snapshot: Snapshot) -> None:
    found, leant = searched("and how is it done?", snapshot)
    assert leant == ContextualQuery(f"{CACHE}\nand how is it done?", CACHE)
    assert found.candidates[0].chunk.section_heading == "Clearing the cache"
    assert found.verdict == "yes"
    scores = [c.score for c in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert len({c.chunk.chunk_id for c in found.candidates}) == len(scores)


def test_what_a_question_points_at_counts_more_than_its_own_words(snapshot: Snapshot) -> None:
    alone, in_context = (
        retrieve(snapshot, None, SearchRequest(text)) for text in ("roll back a deployment", "clear the cache")
    )
    assert alone.candidates[0].score == in_context.candidates[0].score
    found = merge_retrievals(alone, in_context)
    assert [c.chunk.section_heading for c in found.candidates[:1]] == ["Clearing the cache"]
    assert "Rolling back" in [c.chunk.section_heading for c in found.candidates]


def test_nothing_to_lean_on_changes_nothing(snapshot: Snapshot) -> None:
    found, leant = searched("and how is it done?", snapshot, "")
    assert leant is None
    assert found.verdict == "no"


@pytest.mark.parametrize("question", ["tell me a joke", "weather tomorrow"])
def test_a_foreign_question_does_not_become_an_answer_by_what_was_asked_before(
    question: str, snapshot: Snapshot
) -> None:
    found, leant = searched(question, snapshot, verdict="perhaps")
    assert leant is None
    assert found.verdict == "no"


@pytest.mark.parametrize(
    ("question", "verdict", "elsewhere"), [("and how is it done?", "yes", True), ("a joke", "perhaps", False)]
)
def test_only_a_rewriting_that_is_used_may_be_answered_in_another_language(
    question: str, verdict: FollowUpVerdict, elsewhere: bool, snapshot: Snapshot
) -> None:
    query = ContextualQuery(f"{CACHE}\n{question}", CACHE)

    def search(text: str) -> Retrieval:
        return replace(retrieve(snapshot, None, SearchRequest(text)), other_language=text == query.text)

    found = search_follow_up(question, verdict, lambda: query, search)
    assert found.other_language == elsewhere
