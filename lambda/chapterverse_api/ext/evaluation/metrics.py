"""Retrieval metrics of one question, computed from the ranks of its expected places.

Ranks start at 1, and None is "not found". Several chunks of one expected section count once, at the first rank (see
`places.ranks`). All figures are from 0 to 1, look at the first ten results and are averaged over questions with equal
weight. They follow Manning, Raghavan and Schütze, "Introduction to Information Retrieval" (2008), chapter 8, with nDCG
by Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import Field

#: From 1; None for "not found".
Rank: TypeAlias = Annotated[int, Field(ge=1)] | None
Ranks: TypeAlias = Sequence[Rank]

#: Results that the figures look at.
DEPTH = 10


def recall(ranks: Ranks, k: int) -> float:
    """Return the share of the expected places among the first `k` results."""
    return sum(1 for _ in _within(ranks, k)) / len(ranks)


def hit(ranks: Ranks, k: int) -> float:
    """Return 1 if any expected place is among the first `k` results, else 0."""
    return float(any(True for _ in _within(ranks, k)))


def reciprocal_rank(ranks: Ranks) -> float:
    """Return 1 over the rank of the first expected place, 0 if none is among the first ten; its mean is MRR."""
    return 1 / min(_within(ranks, DEPTH), default=math.inf)


def ndcg(ranks: Ranks, k: int = DEPTH) -> float:
    """Return the discounted cumulated gain of the first `k` results over that of the best order.

    Gains are binary and discounted by log2(rank + 1), the usual form since Burges et al. (2005). The best order has as
    many expected places first as `k` results can hold.
    """
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(ranks), k) + 1))
    return math.fsum(1 / math.log2(rank + 1) for rank in _within(ranks, k)) / best


def _within(ranks: Ranks, k: int) -> Iterable[int]:
    return (rank for rank in ranks if rank is not None and rank <= k)


#: Metrics of one question's ranks, by name.
RANKED: Mapping[str, Callable[[Ranks], float]] = {
    "recall@3": partial(recall, k=3),
    "recall@5": partial(recall, k=5),
    "recall@10": partial(recall, k=10),
    "hit@1": partial(hit, k=1),
    "hit@5": partial(hit, k=5),
    "mrr": reciprocal_rank,
    "ndcg@10": ndcg,
}

#: Prefix of a figure that counts pages instead of sections.
PAGE = "page."

#: Share of the unanswerable questions that were refused, and of the answerable ones that were not.
REFUSED, ANSWERED = "refused", "answered"

#: Every retrieval figure that may have a bar; higher is better.
NAMES = (*RANKED, *(PAGE + name for name in RANKED), REFUSED, ANSWERED)


def of_ranks(anchor: Ranks, page: Ranks) -> dict[str, float]:
    """Return the figures of one answerable question, from the ranks of its sections and of its pages."""
    return {
        **{name: measure(anchor) for name, measure in RANKED.items()},
        **{PAGE + name: measure(page) for name, measure in RANKED.items()},
    }


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None for no values."""
    return math.fsum(values) / len(values) if values else None
