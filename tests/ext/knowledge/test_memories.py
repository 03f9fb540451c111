from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chapterverse.model import MEMORY, Chunk, SparseVector
from chapterverse_api.ext.knowledge.memories import (
    MAX_IMPORTANCE_BONUS,
    MAX_RECENCY_BONUS,
    MIN_PAGE_SCORE_SHARE,
    weigh_memories,
)
from chapterverse_api.search.ranking import Candidate

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def scored(
    name: str, score: float, kind: str = "page", importance: int = 3, date: str = "", indexed: str = ""
) -> Candidate:
    chunk = Chunk(
        name, "", name, "T", None, ("T",), 0, f"{name}.md", "", True, "", type=kind, importance=importance,
        created_at=date, timestamp=indexed,
    )  # fmt: skip
    return Candidate(chunk, SparseVector((), ()), score, 0.0, {"fused": score}, None)


def names(found: list[Candidate]) -> list[str]:
    return [r.chunk.chunk_id for r in found]


def test_without_a_memory_nothing_is_touched() -> None:
    pages = [scored("a", 0.9), scored("b", 0.1)]
    assert weigh_memories(pages, NOW) == pages
    assert weigh_memories([], NOW) == []


def test_what_does_not_come_near_the_best_page_is_not_shown_however_important() -> None:
    pages = [scored("page", 0.8), scored("note", 0.8 * MIN_PAGE_SCORE_SHARE - 0.01, MEMORY, 5, NOW.isoformat())]
    assert names(weigh_memories(pages, NOW)) == ["page"]
    pages[1] = scored("note", 0.8 * MIN_PAGE_SCORE_SHARE, MEMORY, 5, NOW.isoformat())
    assert names(weigh_memories(pages, NOW)) == ["page", "note"]


def test_memories_alone_have_no_gate_to_pass() -> None:
    assert names(weigh_memories([scored("a", 0.3, MEMORY), scored("b", 0.01, MEMORY)], NOW)) == ["a", "b"]


def test_importance_and_recency_decide_between_near_equals_and_are_told() -> None:
    old, new = "2020-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
    found = weigh_memories([scored("plain", 0.50, MEMORY, 1, old), scored("weighty", 0.45, MEMORY, 5, new)], NOW)
    assert names(found) == ["weighty", "plain"]
    best = found[0]
    assert (best.components["importance"], best.components["recency"]) == (1.0, 1.0)
    assert best.score == pytest.approx(0.45 + MAX_IMPORTANCE_BONUS + MAX_RECENCY_BONUS)
    assert best.components["fused"] == 0.45
    assert found[1].components["importance"] == 0.0
    assert found[1].components["recency"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("date", "recency"),
    [
        ("", 0.0),
        ("yesterday", 0.0),
        (NOW.isoformat(), 1.0),
        ("2026-06-01", 1.0),
        ((NOW - timedelta(days=30)).isoformat(), 0.5),
        ((NOW - timedelta(days=60)).isoformat(), 0.25),
        ("2999-01-01T00:00:00Z", 1.0),
        ("0001-01-01T00:00:00+23:59", 0.0),
        ("9999-12-31T23:59:59-23:59", 1.0),
    ],
)
def test_a_memory_fades_by_half_each_month(date: str, recency: float) -> None:
    (found,) = weigh_memories([scored("a", 0.5, MEMORY, date=date)], NOW)
    assert found.components["recency"] == pytest.approx(recency)


def test_without_a_date_of_its_own_it_is_as_old_as_its_indexing() -> None:
    (found,) = weigh_memories([scored("a", 0.5, MEMORY, indexed="2026-05-02T00:00:00Z")], NOW)
    assert found.components["recency"] == pytest.approx(0.5)


@pytest.mark.parametrize(("importance", "share"), [(-7, 0.0), (0, 0.0), (1, 0.0), (3, 0.5), (5, 1.0), (10**9, 1.0)])
def test_importance_out_of_range_is_the_nearest_in_it(importance: int, share: float) -> None:
    (found,) = weigh_memories([scored("a", 0.99, MEMORY, importance, NOW.isoformat())], NOW)
    assert found.components["importance"] == share
    assert found.score <= 1.0


def test_equals_stay_as_they_were() -> None:
    found = weigh_memories([scored("b", 0.5), scored("a", 0.5), scored("m", 0.4, MEMORY)], NOW)
    assert names(found)[:2] == ["b", "a"]
