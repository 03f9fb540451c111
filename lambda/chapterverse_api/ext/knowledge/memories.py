"""Finds and ranks memories, the owner's notes: by similarity, importance and recency.

A question's memories are those with evidence enough. The product of evidence, importance and recency orders them, so
none of the three makes up for the lack of another. They inform a model, and what has no page is never cited.
`/v1/retrieve` ranks memories among the pages.

There, a memory must first come near the best page. Importance and recency then add less than what sets good hits
apart. As equal terms of a sum they would lift an important note above one that answers the question.
"""

from __future__ import annotations

from datetime import UTC, datetime

from chapterverse.calibration import Calibration, Matching, read_question
from chapterverse.filters import And, Filter, In
from chapterverse.model import MEMORY, Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api.search.lookups import LookupQuery, LookupResult
from chapterverse_api.search.question import correct
from chapterverse_api.search.ranking import Candidate

#: A memory that scores lower than this share of the best page is dropped.
MIN_PAGE_SCORE_SHARE = 0.6
#: The most that importance adds to a score, and recency.
MAX_IMPORTANCE_BONUS, MAX_RECENCY_BONUS = 0.05, 0.05
#: Days after which a memory is half as recent (Park et al., "Generative Agents", 2023, decay by the hour).
_HALF_LIFE_DAYS = 30.0
#: Memories that a question is compared with, the best by words.
_MAX_MEMORIES = 20
#: The range of `Chunk.importance`.
_MIN_IMPORTANCE, _MAX_IMPORTANCE = 1, 5


def look_up(query: LookupQuery) -> LookupResult:
    """Return the memories that have evidence for a question, for a model to know or as further sources."""
    searched = correct(query.text, query.snapshot)
    return LookupResult(select_memories(searched, query.snapshot, query.filters, query.settings.memory_top_k))


def select_memories(
    question: str, snapshot: Snapshot, filters: Filter, top_k: int, now: datetime | None = None
) -> list[Candidate]:
    """Return the memories that have evidence for a question, best first. The search is by words alone.

    Raises:
        IndexFault: the index can't be read.
    """
    head = snapshot.head
    words, idf = read_question(question, head.languages, snapshot)
    if not words.has_words:
        return []
    matching, calibration = Matching(words, idf), Calibration.from_json(head.calibration)
    vector = lexical.query_vector(question, head.languages)
    memories = list[Candidate]()
    now = now or datetime.now(UTC)
    for hit in snapshot.search_lexical(vector, _MAX_MEMORIES, And((In("type", (MEMORY,)), filters))):
        features = matching.features(hit.lexical.among(idf))
        evidence, importance = calibration.of(features), _importance(hit.chunk) / _MAX_IMPORTANCE
        recency = _recency(hit.chunk, now)
        if evidence >= calibration.floor:
            parts = {"importance": importance, "recency": recency}
            score = evidence * importance * recency
            memories.append(Candidate(hit.chunk, hit.lexical, score, evidence, parts, features))
    return sorted(memories, key=lambda c: -c.score)[:top_k]


def weigh_memories(candidates: list[Candidate], now: datetime | None = None) -> list[Candidate]:
    """Return the candidates with memories gated and weighted, in order again."""
    gate = MIN_PAGE_SCORE_SHARE * max((c.score for c in candidates if c.chunk.type != MEMORY), default=0.0)
    now = now or datetime.now(UTC)
    results = [
        _weigh(c, now) if c.chunk.type == MEMORY else c for c in candidates if c.chunk.type != MEMORY or c.score >= gate
    ]
    return sorted(results, key=lambda c: -c.score)


def _weigh(candidate: Candidate, now: datetime) -> Candidate:
    importance = (_importance(candidate.chunk) - _MIN_IMPORTANCE) / (_MAX_IMPORTANCE - _MIN_IMPORTANCE)
    recency = _recency(candidate.chunk, now)
    bonus = MAX_IMPORTANCE_BONUS * importance + MAX_RECENCY_BONUS * recency
    return candidate._replace(
        score=min(1.0, candidate.score + bonus),
        components={**candidate.components, "importance": importance, "recency": recency},
    )


def _importance(chunk: Chunk) -> int:
    return min(max(chunk.importance, _MIN_IMPORTANCE), _MAX_IMPORTANCE)


def _recency(chunk: Chunk, now: datetime) -> float:
    """Return 1 for now, half for each half-life before; 0 without a date."""
    try:
        then = datetime.fromisoformat(chunk.created_at or chunk.timestamp)
    except ValueError:
        return 0.0
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    days = max(0.0, (now - then).total_seconds() / 86_400)
    return float(0.5 ** (days / _HALF_LIFE_DAYS))
