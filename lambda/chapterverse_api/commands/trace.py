"""The way of one question through the pipeline that answers it, for `chapterverse trace`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chapterverse.model import Head
from chapterverse_api.answering.context import AnswerContext
from chapterverse_api.answering.pipeline import AnswerTrace, answer_query
from chapterverse_api.answering.resources import Resources
from chapterverse_api.contract import ChatQuery, ChatResponse
from chapterverse_api.retrieval.candidates import Candidate
from chapterverse_api.retrieval.faq import FaqMatch
from chapterverse_api.retrieval.ranking import contributions
from chapterverse_api.retrieval.search import Retrieval


def trace(resources: Resources, query: ChatQuery) -> dict[str, Any]:
    """Answer a question and return how; see `chapterverse.session.Session.trace`.

    Raises:
        InputError: a filter names no known field, or the page is of another site.
        IndexFault: no index can be read.
    """
    traced = AnswerTrace()
    *_, response = answer_query(query, resources, trace=traced)
    assert isinstance(response, ChatResponse)
    assert traced.progress is not None
    progress, context = traced.progress, traced.context
    return {
        "query_id": progress.id,
        "question": query.query,
        "state": progress.state,
        "states": [{"state": state, "seconds": seconds} for state, seconds in progress.history],
        "attempts": progress.attempts,
        "created_at": progress.created_at,
        "processed_at": progress.processed_at,
        "model": progress.model,
        "generator": resources.models.generator.name,
        "faq": _faq(context.faq) if context and context.faq else None,
        "retrieval": _retrieval(context, resources) if context else None,
        "sentences": [asdict(check) for check in traced.verified.checks] if traced.verified else [],
        "response": response.model_dump(mode="json"),
    }


def _faq(match: FaqMatch) -> dict[str, Any]:
    """Return the FAQ entry that answered, and what its probability was made of."""
    return {
        "source_file_path": match.entry.source_file_path,
        "section": match.entry.section_heading,
        "probability": round(match.probability, 4),
        "features": {name: round(value, 4) for name, value in match.features._asdict().items()},
    }


def _retrieval(context: AnswerContext, resources: Resources) -> dict[str, Any] | None:
    """Return what was searched and what was found; None where nothing was searched."""
    found, snapshot = context.found, context.snapshot
    if found is None or snapshot is None:
        return None
    return {
        "searched": found.searched,
        "algorithm": found.algorithm,
        "verdict": found.verdict,
        "answerability": round(found.answerability, 4),
        "evidence": round(found.evidence, 4),
        "floor": found.calibration.floor,
        "failures": {part: str(error) for part, error in found.failures.items()},
        "timings": {stage: round(seconds, 6) for stage, seconds in found.timings.items()},
        "total": found.total,
        "candidates": _candidates(context, found, snapshot.head, resources),
    }


def _candidates(context: AnswerContext, found: Retrieval, head: Head, resources: Resources) -> list[dict[str, Any]]:
    sources = {source.chunk_id: source.id for source in context.sources}
    return [
        {
            "rank": round(candidate.rank, 4),
            "evidence": round(candidate.evidence, 4),
            "chapter": candidate.chunk.chapter_title,
            "section": candidate.chunk.section_heading,
            "url": resources.index.public_url(candidate.chunk, head),
            "chunk_id": candidate.chunk.chunk_id,
            "type": candidate.chunk.type,
            "components": _rounded(candidate),
            "contributions": {name: round(value, 4) for name, value in contributions(candidate.components).items()},
            "source": sources.get(candidate.chunk.chunk_id),
            "omitted": context.omissions.get(candidate.chunk.chunk_id),
        }
        for candidate in found.candidates
    ]


def _rounded(candidate: Candidate) -> dict[str, float]:
    return {name: round(value, 4) for name, value in candidate.components.items()}
