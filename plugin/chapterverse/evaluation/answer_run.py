"""Answers every question of a run by the whole pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chapterverse.errors import IndexLocked
from chapterverse.evaluation.answer_metrics import AnswerResult, CitationCounts, MutationCounts
from chapterverse.evaluation.mutations import KINDS, Claim, mutations
from chapterverse.evaluation.places import SitePlaces, distinct, match
from chapterverse.evaluation.questions import QuestionRow
from chapterverse.evaluation.runs import Run
from chapterverse.progress import Progress
from chapterverse.session import Session
from chapterverse.settings import Settings

#: Mutated sentences between two reports of progress.
_AT_ONCE = 50


def answer(run: Run, asked: Sequence[QuestionRow], session: Session, settings: Settings, report: Progress) -> Run:
    """Have the service answer every question of a run, and return the run with the answers.

    An interrupt ends the asking and keeps what was answered before it.

    Args:
        asked: the questions of the run's rows, in the same order.

    Raises:
        IndexLocked: the index was published anew meanwhile.
        IndexFault: there is no index that can be read.
    """
    site = SitePlaces((run.index.base_url, settings.base_url))
    answers, claims, interrupted = list[AnswerResult | None](), list[Claim](), False
    try:
        for done, one in enumerate(asked):
            report("Answering questions", done, len(asked))
            found = session.judge(one.question, one.history)
            if found["generation"] != run.index.generation:
                raise IndexLocked(
                    f"The index of {run.index.site} was published anew while its questions were answered: run it again."
                )
            answers.append(_answer(one, found, site))
            claims += found["claims"] if not found["degraded"] else ()
        report("Answering questions", len(asked), len(asked))
        caught = _caught(claims, session, report)
    except KeyboardInterrupt:
        caught, interrupted = {}, True
    answers += [None] * (len(asked) - len(answers))
    rows = tuple(replace(row, answer=made) for row, made in zip(run.rows, answers, strict=True))
    return replace(run, rows=rows, generator=settings.generator, caught=caught, interrupted=interrupted)


def _answer(asked: QuestionRow, found: dict[str, Any], site: SitePlaces) -> AnswerResult:
    expected = distinct(site.place(address) for address in asked.expected)
    counted = ("citations", "valid", "sentences", "carried", "pairs", "precise")
    return AnswerResult(
        status=found["status"],
        confidence=found["confidence"],
        text=found["text"],
        cited=tuple(CitationCounts(url, match(expected, site.place(url))) for url in found["cited"]),
        **{name: found[name] for name in counted},
        nuggets=len(asked.nuggets),
        contained=0 if found["status"] == "not_in_docs" else sum(n.stands_in(found["text"]) for n in asked.nuggets),
        seconds=found["seconds"],
        degraded=found["degraded"],
    )


def _caught(claims: Sequence[Claim], session: Session, report: Progress) -> dict[str, MutationCounts]:
    """Return how many of the claims, made wrong in each way, the verifier does not let stand."""
    made = list(mutations(claims))
    stands: list[bool] = []
    for at in range(0, len(made), _AT_ONCE):
        report("Testing the verifier", at, len(made))
        stands += session.holds([claim for _, claim in made[at : at + _AT_ONCE]])
    report("Testing the verifier", len(made), len(made))
    fell: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for (kind, _), stood in zip(made, stands, strict=True):
        fell[kind].append(not stood)
    return {kind: MutationCounts(len(tried), sum(tried)) for kind, tried in fell.items() if tried}
