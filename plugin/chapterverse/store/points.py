"""What every store does with points in the same way: check them, slice them, rank them, and leave out odd filters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from chapterverse.errors import IndexMismatch
from chapterverse.model import PERSONA, Point
from chapterverse.text.json_text import INTEGERS
from chapterverse.text.utf8 import SURROGATE

T = TypeVar("T")

#: Results beyond the wanted ones, so that a tie at the edge is seen.
_TIE_MARGIN = 16


def check_point(point: Point, dense_size: int) -> None:
    """Raises `IndexMismatch` if a vector is malformed, or of another size than the index's.

    It is checked before the point reaches the engine, which would accept it and break.
    """
    indices, values, dense = point.lexical.indices, point.lexical.values, point.dense
    ascending = all(a < b for a, b in pairwise(indices))
    bounded = not indices or (indices[0] >= 0 and indices[-1] < 2**32)
    sound = len(indices) == len(values) and ascending and bounded and all(map(math.isfinite, values))
    if not sound or not all(map(math.isfinite, dense or ())):
        raise IndexMismatch(f"The vectors of chunk {point.chunk.chunk_id} are malformed: nothing was published.")
    if len(dense or ()) != (0 if point.chunk.type == PERSONA else dense_size):
        raise IndexMismatch(
            f"A vector has {len(dense or ())} dimensions, the index holds {dense_size}: nothing was published."
        )


def slices(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[at : at + size] for at in range(0, len(values), size))


def best(ask: Callable[[int], Sequence[T]], order: Callable[[T], tuple[float, object]], limit: int) -> list[T]:
    """Return the best results, with ties cut by our own order, for the engine's own order of them is a whim.

    Args:
        ask: returns the engine's best results, at most so many.
        order: gives the score, negated, and what decides a tie.
    """
    asked = limit + _TIE_MARGIN
    while True:
        results = ask(asked)
        if len(results) < asked or order(results[-1])[0] != order(results[limit - 1])[0]:
            return sorted(results, key=order)[:limit]
        asked *= 4


def is_storable(value: str | int) -> bool:
    """Return whether a store can hold this value of a field; one that it can't hold it can't find either."""
    if isinstance(value, int):
        return value in INTEGERS
    return value.isascii() or not SURROGATE.search(value)
