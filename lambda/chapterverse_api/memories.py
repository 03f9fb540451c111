"""Memories among the results: notes of the docs' owner, which are found by likeness first and weighed after.

The plain sum of similarity, importance and recency lets an important note that has nothing to do with the question
beat one that answers it: .5 · .2 + .5 · 1 is more than .5 · .8 + .5 · .3. So a memory must first come near the best
page, and what importance and recency add then is less than what sets good hits apart.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from chapterverse_api.ranking import Ranked

MEMORY = "memory"
#: A memory that ranks lower than this share of the best page is not shown at all.
GATE = 0.6
#: The most that importance adds to a rank, and recency.
IMPORTANCE, RECENCY = 0.05, 0.05
#: Days after which a memory is half as recent (Park et al., "Generative Agents", 2023, decay by the hour).
HALF_LIFE = 30.0
#: What importance is counted in (DESIGN 4.1).
_LEAST, _MOST = 1, 5


def weigh(ranked: list[Ranked], now: datetime | None = None) -> list[Ranked]:
    """Return the hits with memories gated and weighted, in order again; untouched where there is no memory."""
    if not any(r.hit.chunk.type == MEMORY for r in ranked):
        return ranked
    gate = GATE * max((r.rank for r in ranked if r.hit.chunk.type != MEMORY), default=0.0)
    now = now or datetime.now(UTC)
    kept = [_weighted(r, now) if r.hit.chunk.type == MEMORY else r for r in ranked if _passes(r, gate)]
    return sorted(kept, key=lambda r: -r.rank)


def _passes(ranked: Ranked, gate: float) -> bool:
    return ranked.hit.chunk.type != MEMORY or ranked.rank >= gate


def _weighted(ranked: Ranked, now: datetime) -> Ranked:
    chunk = ranked.hit.chunk
    importance = (min(max(chunk.importance, _LEAST), _MOST) - _LEAST) / (_MOST - _LEAST)
    recency = _recency(chunk.created_at or chunk.timestamp, now)
    bonus = IMPORTANCE * importance + RECENCY * recency
    return replace(
        ranked,
        rank=min(1.0, ranked.rank + bonus),
        components={**ranked.components, "importance": importance, "recency": recency},
    )


def _recency(date: str, now: datetime) -> float:
    """Return 1 for now, half for each half-life before; 0 without a date."""
    try:
        then = datetime.fromisoformat(date)
    except ValueError:
        return 0.0
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    days = max(0.0, (now - then).total_seconds() / 86_400)
    return float(0.5 ** (days / HALF_LIFE))
