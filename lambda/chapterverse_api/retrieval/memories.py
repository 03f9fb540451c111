"""Finds and ranks memories, the owner's notes: by similarity, importance and recency.

A question's memories are those with evidence enough. The product of evidence, importance and recency orders them, so
none of the three makes up for the lack of another. They inform a model, and what has no page is never cited.
`/v1/retrieve` ranks memories among the pages.

The plain sum of similarity, importance and recency lets an important note that has nothing to do with the question
beat one that answers it: .5 · .2 + .5 · 1 is more than .5 · .8 + .5 · .3. So a memory must first come near the best
page, and what importance and recency add then is less than what sets good hits apart.
"""

from __future__ import annotations

from datetime import UTC, datetime

from chapterverse.calibration import Calibration, Matching, read_question
from chapterverse.filters import And, Filter, In
from chapterverse.model import MEMORY, Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse_api.retrieval.candidates import Candidate

#: A memory that scores lower than this share of the best page is not shown at all.
GATE = 0.6
#: The most that importance adds to a score, and recency.
IMPORTANCE, RECENCY = 0.05, 0.05
#: Days after which a memory is half as recent (Park et al., "Generative Agents", 2023, decay by the hour).
HALF_LIFE_DAYS = 30.0
#: Memories that a question is compared with, the best by words.
CANDIDATES = 20
#: The range of `Chunk.importance`.
_MIN_IMPORTANCE, _MAX_IMPORTANCE = 1, 5


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
    found = list[Candidate]()
    now = now or datetime.now(UTC)
    for hit in snapshot.search_lexical(vector, CANDIDATES, And((In("type", (MEMORY,)), filters))):
        features = matching.features(hit.lexical.among(idf))
        evidence, importance = calibration.of(features), _importance(hit.chunk) / _MAX_IMPORTANCE
        recency = _recency(hit.chunk.created_at or hit.chunk.timestamp, now)
        if evidence >= calibration.floor:
            parts = {"importance": importance, "recency": recency}
            score = evidence * importance * recency
            found.append(Candidate(hit.chunk, hit.lexical, score, evidence, parts, features))
    return sorted(found, key=lambda c: -c.score)[:top_k]


def weigh_memories(candidates: list[Candidate], now: datetime | None = None) -> list[Candidate]:
    """Return the candidates with memories gated and weighted, in order again; untouched where there is no memory."""
    if not any(c.chunk.type == MEMORY for c in candidates):
        return candidates
    gate = GATE * max((c.score for c in candidates if c.chunk.type != MEMORY), default=0.0)
    now = now or datetime.now(UTC)
    kept = [_weigh(c, now) if c.chunk.type == MEMORY else c for c in candidates if _passes(c, gate)]
    return sorted(kept, key=lambda c: -c.score)


def _passes(candidate: Candidate, gate: float) -> bool:
    return candidate.chunk.type != MEMORY or candidate.score >= gate


def _weigh(candidate: Candidate, now: datetime) -> Candidate:
    chunk = candidate.chunk
    importance = (_importance(chunk) - _MIN_IMPORTANCE) / (_MAX_IMPORTANCE - _MIN_IMPORTANCE)
    recency = _recency(chunk.created_at or chunk.timestamp, now)
    bonus = IMPORTANCE * importance + RECENCY * recency
    return candidate._replace(
        score=min(1.0, candidate.score + bonus),
        components={**candidate.components, "importance": importance, "recency": recency},
    )


def _importance(chunk: Chunk) -> int:
    return min(max(chunk.importance, _MIN_IMPORTANCE), _MAX_IMPORTANCE)


def _recency(date: str, now: datetime) -> float:
    """Return 1 for now, half for each half-life before; 0 without a date."""
    try:
        then = datetime.fromisoformat(date)
    except ValueError:
        return 0.0
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    days = max(0.0, (now - then).total_seconds() / 86_400)
    return float(0.5 ** (days / HALF_LIFE_DAYS))
