"""Checks points, cuts them into batches and ranks them, in the same way for every store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from chapterverse.errors import IndexMismatch
from chapterverse.model import PERSONA, Point
from chapterverse.text.json_text import INTEGERS
from chapterverse.text.utf8 import SURROGATE

_T = TypeVar("_T")

#: Results that are ranked beyond the limit, so that a tie at the limit is noticed.
_TIE_MARGIN = 16


def check_point(point: Point, dense_size: int) -> None:
    """Raise `IndexMismatch` if a vector is malformed, or of another size than the index's.

    The engine would accept such a point and break.
    """
    indices, values, dense = point.lexical.indices, point.lexical.values, point.dense
    ascending = all(a < b for a, b in pairwise(indices))
    bounded = not indices or (indices[0] >= 0 and indices[-1] < 2**32)
    is_valid = len(indices) == len(values) and ascending and bounded and all(map(math.isfinite, values))
    if not is_valid or not all(map(math.isfinite, dense or ())):
        raise IndexMismatch(f"The vectors of chunk {point.chunk.chunk_id} are malformed: nothing was published.")
    if len(dense or ()) != (0 if point.chunk.type == PERSONA else dense_size):
        raise IndexMismatch(
            f"A vector has {len(dense or ())} dimensions, the index holds {dense_size}: nothing was published."
        )


def batches(values: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (values[at : at + size] for at in range(0, len(values), size))


def rank_with_ties(
    rank: Callable[[int], Sequence[_T]], order: Callable[[_T], tuple[float, object]], limit: int
) -> list[_T]:
    """Return the best results. Ties are put into our own order, because the engine's order of them is arbitrary.

    Args:
        rank: returns the engine's best results, at most so many.
        order: returns the negated score of a result, and the key that decides a tie.
    """
    size = limit + _TIE_MARGIN
    while True:
        results = rank(size)
        if len(results) < size or order(results[-1])[0] != order(results[limit - 1])[0]:
            return sorted(results, key=order)[:limit]
        size *= 4


def is_storable(value: str | int) -> bool:
    """Return whether a store can hold this value of a field. It can't find other values either."""
    if isinstance(value, int):
        return value in INTEGERS
    return value.isascii() or not SURROGATE.search(value)
