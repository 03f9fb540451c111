"""Answers every question of a run through the whole pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chapterverse.errors import IndexLocked
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse_api.ext.evaluation.answer_metrics import AnswerResult, CitationCounts, MutationCounts
from chapterverse_api.ext.evaluation.mutations import KINDS, mutations
from chapterverse_api.ext.evaluation.places import SitePlaces, distinct, match_place
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.quoting import cut_in_silence, repeats
from chapterverse_api.ext.evaluation.runs import Run
from chapterverse_api.ext.evaluation.session import AnswerJudgement, CitedClaim, EvaluationSession

#: Mutated sentences between two reports of progress.
_CLAIMS_PER_CALL = 50


def answer_questions(
    run: Run, questions: Sequence[QuestionRow], session: EvaluationSession, settings: Settings, report: Progress
) -> Run:
    """Have the service answer every question of a run, and return the run with the answers.

    An interrupt stops the questions and keeps the answers so far.

    Args:
        questions: the questions of the run's rows, in the same order.

    Raises:
        IndexLocked: another generation was published meanwhile.
        IndexFault: there is no readable index.
    """
    site = SitePlaces((run.index.base_url, settings.base_url))
    answers, claims, interrupted = list[AnswerResult | None](), list[CitedClaim](), False
    try:
        for done, question in enumerate(questions):
            report("Answering questions", done, len(questions))
            judgement = session.judge_answer(question.question, question.history)
            if judgement["generation"] != run.index.generation:
                raise IndexLocked(
                    f"The index of {run.index.site} was published anew while its questions were answered: run it again."
                )
            answers.append(_answer(question, run.rows[done].expected, judgement, site))
            claims += judgement["claims"] if not judgement["degraded"] else ()
        report("Answering questions", len(questions), len(questions))
        mutation_counts = _test_check(claims, session, report)
    except KeyboardInterrupt:
        mutation_counts, interrupted = {}, True
    answers += [None] * (len(questions) - len(answers))
    rows = tuple(replace(row, answer=result) for row, result in zip(run.rows, answers, strict=True))
    return replace(run, rows=rows, generator=settings.generator, caught=mutation_counts, interrupted=interrupted)


def _answer(
    question: QuestionRow, addresses: Sequence[str], judgement: AnswerJudgement, site: SitePlaces
) -> AnswerResult:
    expected = distinct(site.place(address) for address in addresses)
    segments = [] if judgement["status"] == "not_in_docs" else judgement["segments"]
    return AnswerResult(
        status=judgement["status"],
        confidence=judgement["confidence"],
        text=judgement["text"],
        cited=tuple(CitationCounts(url, match_place(expected, site.place(url))) for url in judgement["cited"]),
        citations=judgement["citations"],
        valid=judgement["valid"],
        sentences=judgement["sentences"],
        carried=judgement["carried"],
        pairs=judgement["pairs"],
        precise=judgement["precise"],
        nuggets=len(question.nuggets),
        contained=0
        if judgement["status"] == "not_in_docs"
        else sum(n.stands_in(judgement["text"]) for n in question.nuggets),
        quotes=len(judgement["quotes"]),
        silent_cuts=sum(cut_in_silence(text, section) for text, section in judgement["quotes"]),
        repeated=repeats([text for text, _ in judgement["quotes"]]),
        key=question.key.figures(segments) if question.key else {},
        seconds=judgement["seconds"],
        degraded=judgement["degraded"],
    )


def _test_check(
    claims: Sequence[CitedClaim], session: EvaluationSession, report: Progress
) -> dict[str, MutationCounts]:
    """Return by kind how many false sentences were checked, and how many the check rejected."""
    mutated = list(mutations(claims))
    stands: list[bool] = []
    for at in range(0, len(mutated), _CLAIMS_PER_CALL):
        report("Testing the verifier", at, len(mutated))
        stands += session.holds([claim for _, claim in mutated[at : at + _CLAIMS_PER_CALL]])
    report("Testing the verifier", len(mutated), len(mutated))
    rejected: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for (kind, _), supported in zip(mutated, stands, strict=True):
        rejected[kind].append(not supported)
    return {kind: MutationCounts(len(outcomes), sum(outcomes)) for kind, outcomes in rejected.items() if outcomes}
