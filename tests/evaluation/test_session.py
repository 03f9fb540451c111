"""The measured counts of an answer, for honest answers and those of a broken service."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api import quill
from chapterverse.errors import InputError
from chapterverse.settings import Settings
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import ChatResponse, Events, Segment
from chapterverse_api.ext.evaluation.session import CitedClaim, EvaluationSession, JudgedAnswer

CLEAN = "How do I clear the cache?"
PRUNE = "`quill cache prune` removes the entries that no page uses any more."


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("quill"))


@pytest.fixture
def service(settings: Settings) -> EvaluationSession:
    return quill.service(settings)


def tampered(service: EvaluationSession, tamper: Callable[[ChatResponse], ChatResponse]) -> JudgedAnswer:
    """Return the counts of an answer that was changed after its verification."""

    def answer(turn: Turn) -> Events:
        for event in answer_turn(turn):
            yield tamper(event) if isinstance(event, ChatResponse) else event

    return service.judge_answer(CLEAN, None, answer=answer)


def segments(response: ChatResponse, *made: Segment) -> ChatResponse:
    return response.model_copy(update={"segments": list(made)})


def test_an_honest_answer_is_valid_throughout(service: EvaluationSession) -> None:
    judged = service.judge_answer(CLEAN, None)
    assert judged.result.status in ("answered", "partial")
    assert f"{quill.BASE}cache/#clearing-the-cache" in judged.cited
    assert judged.result.citations == judged.result.valid > 0
    assert judged.result.sentences == judged.result.carried == len(judged.claims) > 0
    assert judged.result.pairs == judged.result.precise
    assert 0 < judged.result.seconds["retrieve"] <= judged.result.seconds["first"] <= judged.result.seconds["total"]
    assert (judged.result.degraded, judged.generation) == (None, 1)


def test_our_own_words_are_not_asked_for_a_source(service: EvaluationSession) -> None:
    assert service.judge_answer(CLEAN, None).result.text.startswith("**Caching › Clearing the cache**")
    refused = service.judge_answer("Who won the world cup in 1998?", None)
    assert (refused.result.status, refused.result.sentences, refused.result.citations, refused.claims) == (
        "not_in_docs",
        0,
        0,
        [],
    )
    assert "first" not in refused.result.seconds


def cited(text: str, *ids: str) -> Callable[[ChatResponse], ChatResponse]:
    return lambda response: segments(response, Segment(text=text, citations=list(ids)))


def first_source(response: ChatResponse) -> str:
    return next(s.id for s in response.source_chunks if (s.url or "").endswith("#clearing-the-cache"))


def moved(response: ChatResponse) -> ChatResponse:
    """Return the answer with every source at an address of another page."""
    sources = [s.model_copy(update={"url": f"{quill.BASE}themes/#dark-mode"}) for s in response.source_chunks]
    return response.model_copy(update={"source_chunks": sources})


def twice(response: ChatResponse) -> ChatResponse:
    return response.model_copy(update={"source_chunks": response.source_chunks * 2})


@pytest.mark.parametrize(
    "tamper",
    [
        cited(PRUNE, "99"),
        cited("Deployment 41 is live again within 30 days.", "1"),
        lambda r: segments(r, Segment(text=PRUNE.replace("removes", "never removes"), citations=[first_source(r)])),
        lambda r: segments(r, Segment(text="`quill cache purge` removes all 7 entries.", citations=[first_source(r)])),
        moved,
        twice,
    ],
)
def test_no_citation_of_a_broken_answer_is_valid(
    service: EvaluationSession, tamper: Callable[[ChatResponse], ChatResponse]
) -> None:
    judged = tampered(service, tamper)
    assert judged.result.citations > 0
    assert (judged.result.valid, judged.result.carried, judged.result.precise, judged.claims) == (0, 0, 0, [])


def test_a_sentence_without_a_citation_is_not_carried(service: EvaluationSession) -> None:
    judged = tampered(service, cited(PRUNE))
    assert (judged.result.citations, judged.result.sentences, judged.result.carried) == (0, 1, 0)


def test_one_false_citation_beside_a_true_one_is_counted(service: EvaluationSession) -> None:
    judged = tampered(service, lambda r: segments(r, Segment(text=PRUNE, citations=[first_source(r), "99"])))
    assert (
        judged.result.citations,
        judged.result.valid,
        judged.result.carried,
        judged.result.pairs,
        judged.result.precise,
    ) == (
        2,
        1,
        1,
        2,
        1,
    )


def test_claims_hold_as_they_are_and_not_otherwise(service: EvaluationSession) -> None:
    claims = service.judge_answer(CLEAN, None).claims
    assert list(service.holds(claims)) == [True] * len(claims)
    assert list(service.holds([{**claims[0], "text": "Deployment 41 is live again within 30 days."}])) == [False]
    gone: list[CitedClaim] = [{**claims[0], "chunk_id": "gone"}, {**claims[0], "url": "https://else.example/"}]
    assert list(service.holds(gone)) == [False] * 2


def test_a_question_out_of_contract_is_one_sentence(service: EvaluationSession) -> None:
    with pytest.raises(InputError, match="query must hold at least one letter or digit"):
        service.judge_answer("!", None)
