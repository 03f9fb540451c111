"""Describes each step of one question through the pipeline, for `chapterverse trace`."""

from __future__ import annotations

from typing import Any

from chapterverse.calibration import count_terms
from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse.text import lexical, thesaurus
from chapterverse_api.answering.pipeline import answer_turn
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.turn import Sources, Turn
from chapterverse_api.contract import ChatQuery, ChatResponse
from chapterverse_api.retrieval.faq import FaqMatch, least_probability
from chapterverse_api.retrieval.ranking import Candidate, contributions
from chapterverse_api.retrieval.results import Retrieval
from chapterverse_api.retrieval.site_search import find_faq_entry


def trace_answer(resources: Resources, query: ChatQuery) -> dict[str, Any]:
    """Answer a question as `answer` does, and return the document of `trace --json`.

    query_id, question, state, attempts, created_at, processed_at, model, generator
    states       each state with the seconds until it
    faq          the entry that answered, or None
    nearest_faq  the likeliest entry if none answered, with the `least` probability of an answer, or None
    memories     the memories that informed a model
    retrieval    None without a search, else searched, subject, unknown_words, synonyms by words, algorithm,
                 verdict, answerability, evidence, floor, failures, timings, total, and the candidates, each
                 with its `source` id or the stage that `omitted` it
    sentences    each sentence with its `check`
    response     the `ChatResponse`

    Raises:
        InputError: a filter names no known field, or the page is of another site.
        IndexFault: no index can be read.
    """
    turn = Turn.open(query, resources)
    *_, response = answer_turn(turn)
    assert isinstance(response, ChatResponse)
    progress, sources = turn.progress, turn.sources
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
        "faq": _faq(sources.faq) if sources.faq else None,
        "nearest_faq": _nearest_faq(query, sources, resources),
        "memories": _memories(sources),
        "retrieval": _retrieval(sources, resources),
        "tools": [use.model_dump(mode="json") for use in sources.tool_uses],
        "sentences": [check.as_json() for check in turn.verified.checks] if turn.verified else [],
        "response": response.model_dump(mode="json"),
    }


def _nearest_faq(query: ChatQuery, sources: Sources, resources: Resources) -> dict[str, Any] | None:
    """Return the likeliest FAQ entry, which did not answer, and the least probability with which it would have."""
    if sources.retrieval is None or sources.snapshot is None:
        return None
    match = find_faq_entry(query, sources.snapshot, resources.index, likely=False)
    return _faq(match) | {"least": least_probability()} if match else None


def _memories(sources: Sources) -> list[dict[str, Any]]:
    ids = {source.chunk_id: source.id for source in sources.shown}
    return [
        {
            "source_file_path": memory.chunk.source_file_path,
            "rank": round(memory.score, 4),
            "evidence": round(memory.evidence, 4),
            "components": _round(memory),
            "source": ids.get(memory.chunk.chunk_id),
        }
        for memory in sources.memories
    ]


def _unknown_words(text: str, snapshot: Snapshot) -> list[str]:
    """Return the words of a question that no chunk of the index holds, in order."""
    terms_by_word: dict[str, set[int]] = {}
    for word in lexical.question_words(text, snapshot.head.languages):
        terms_by_word.setdefault(word.surface, set()).update(word.terms)
    counts = count_terms(set().union(*terms_by_word.values()), snapshot)
    return [word for word, word_terms in terms_by_word.items() if not any(counts[term] for term in word_terms)]


def _synonyms(retrieval: Retrieval) -> dict[str, list[str]]:
    """Return the stems that were also searched for, by the words of the question that they stand for."""
    searched_terms = {synonym.term for synonym in retrieval.question.synonyms}
    stems_by_words = {
        " ".join(entry.words): [stem for stem in entry.synonyms if lexical.hash_term(stem) in searched_terms]
        for entry in thesaurus.find_synonyms(retrieval.subject)
    }
    return {words: stems for words, stems in stems_by_words.items() if stems}


def _faq(match: FaqMatch) -> dict[str, Any]:
    """Return a FAQ entry with its probability, and the features from which that was computed."""
    return {
        "source_file_path": match.entry.source_file_path,
        "section": match.entry.section_heading,
        "probability": round(match.probability, 4),
        "features": {name: round(value, 4) for name, value in match.features._asdict().items()},
    }


def _retrieval(sources: Sources, resources: Resources) -> dict[str, Any] | None:
    """Return the query and the results; None without a search."""
    retrieval, snapshot = sources.retrieval, sources.snapshot
    if retrieval is None or snapshot is None:
        return None
    return {
        "searched": retrieval.searched,
        "subject": retrieval.subject,
        "unknown_words": _unknown_words(retrieval.subject, snapshot),
        "synonyms": _synonyms(retrieval),
        "algorithm": retrieval.algorithm,
        "verdict": retrieval.verdict,
        "answerability": round(retrieval.answerability.docs, 4),
        "first page": round(retrieval.answerability.first, 4),
        "evidence": round(retrieval.evidence, 4),
        "floor": retrieval.calibration.floor,
        "failures": {part: str(error) for part, error in retrieval.failures.items()},
        "timings": {stage: round(seconds, 6) for stage, seconds in retrieval.timings.items()},
        "total": retrieval.total,
        "candidates": _candidates(sources, retrieval, snapshot.head, resources),
    }


def _candidates(sources: Sources, retrieval: Retrieval, head: Head, resources: Resources) -> list[dict[str, Any]]:
    ids = {source.chunk_id: source.id for source in sources.shown}
    return [
        {
            "rank": round(candidate.score, 4),
            "evidence": round(candidate.evidence, 4),
            "chapter": candidate.chunk.chapter_title,
            "section": candidate.chunk.section_heading,
            "url": resources.index.public_url(candidate.chunk, head),
            "chunk_id": candidate.chunk.chunk_id,
            "type": candidate.chunk.type,
            "components": _round(candidate),
            "contributions": {name: round(value, 4) for name, value in contributions(candidate.components).items()},
            "source": ids.get(candidate.chunk.chunk_id),
            # What was left out at first may be a source after all: it stands beside the best one, or was looked up.
            "omitted": None if candidate.chunk.chunk_id in ids else sources.omissions.get(candidate.chunk.chunk_id),
        }
        for candidate in retrieval.candidates
    ]


def _round(candidate: Candidate) -> dict[str, float]:
    return {name: round(value, 4) for name, value in candidate.components.items()}
