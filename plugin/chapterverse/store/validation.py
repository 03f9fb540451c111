"""Whether a point can be stored: asked before it reaches an engine that would take it and break."""

from __future__ import annotations

import math
from itertools import pairwise

from chapterverse.errors import IndexMismatch
from chapterverse.model import PERSONA, Point


def check(point: Point, dense_size: int) -> None:
    """Raises `IndexMismatch` if a vector is malformed, or of another size than the index's."""
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
