"""Runs made by hand: results of questions in as few words as a test needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chapterverse_api.contract import AnswerStatus
from chapterverse_api.ext.evaluation.metrics import AnswerResult, CitationCounts, MutationCounts
from chapterverse_api.ext.evaluation.runs import IndexInfo, QuestionResult, Result, Run

INDEX = IndexInfo("tea", "", 3, 2, 9, "none", "none", "https://tea.example/", "2026-01-02T03:04:05Z")


def row(name: str, *ranks: int | None, page: Sequence[int | None] | None = None, **fields: Any) -> QuestionResult:
    """Return an answerable question whose expected sections were found at these ranks, and its pages there too."""
    made: dict[str, Any] = {
        "id": name,
        "question": f"What of {name}?",
        "answerable": True,
        "expected": tuple(f"brew/#{n}" for n in range(len(ranks))),
        "missing": (),
        "chapter": "Brewing",
        "anchor_ranks": ranks,
        "page_ranks": ranks if page is None else tuple(page),
        "evidence": 0.9,
        "refused": False,
        "seconds": {"search": 0.001, "total": 0.002},
        "results": (Result(1, 0.9, "https://tea.example/brew/#0", "Brewing", "Green tea", "anchor"),),
    }
    return QuestionResult(**{**made, **fields})


def unanswerable(name: str, *, refused: bool, evidence: float = 0.1, **fields: Any) -> QuestionResult:
    return row(name, answerable=False, refused=refused, evidence=evidence, chapter=None, results=(), **fields)


def answer(status: AnswerStatus = "answered", confidence: float = 0.9, **fields: Any) -> AnswerResult:
    """Return an answer whose one citation holds, to a page that is expected."""
    made = AnswerResult(
        status,
        confidence,
        "Take 80 degrees.",
        cited=(CitationCounts("https://tea.example/brew/#0", "anchor"),),
        citations=2, valid=2, sentences=2, carried=2, pairs=2, precise=2,
        seconds={"retrieve": 0.001, "first": 0.002, "total": 0.003},
    )  # fmt: skip
    return replace(made, **fields)


def refusal() -> AnswerResult:
    return AnswerResult("not_in_docs", 0.0, "I could not find an answer.", seconds={"retrieve": 0.001, "total": 0.001})


def answered(*rows: QuestionResult, **fields: Any) -> Run:
    """Return a run that asked for answers."""
    caught = {"foreign": MutationCounts(10, 9), "number": MutationCounts(4, 4)}
    return replace(replace(run(*rows), generator="extractive", caught=caught), **fields)


def run(*rows: QuestionResult, warnings: tuple[str, ...] = ()) -> Run:
    return Run(INDEX, 0.35, "2026-02-03T04:05:06Z", rows, warnings)


def silent(stage: str, done: int, total: int) -> None:
    """Listen to progress and say nothing."""
