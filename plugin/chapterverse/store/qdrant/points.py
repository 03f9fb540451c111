"""Points as the server takes them, checked before anything is sent."""

from __future__ import annotations

import math
import uuid
from itertools import pairwise
from typing import Any

from chapterverse.errors import IndexMismatch
from chapterverse.model import Point


def point_id(chunk_id: str, key: str, born: int) -> str:
    """Return the id of a chunk's point of one generation: UUIDv5 of both, so that writing it twice writes it once."""
    return str(uuid.uuid5(uuid.UUID(chunk_id), f"{key} {born}"))


def stored(point: Point, key: str, born: int) -> dict[str, Any]:
    """Return a point with the scope that it belongs to (`head`) and the generation that brings it (`born`)."""
    lexical = {"indices": list(point.lexical.indices), "values": list(point.lexical.values)}
    vectors: dict[str, Any] = {"lexical": lexical}
    if point.dense is not None:
        vectors["dense"] = list(point.dense)
    payload = {**point.chunk.payload(), "head": key, "born": born}
    return {"id": point_id(point.chunk.chunk_id, key, born), "vector": vectors, "payload": payload}


def check(point: Point, dense_size: int) -> None:
    """Raises `IndexMismatch` if a vector is malformed, or of another size than the index's."""
    indices, values, dense = point.lexical.indices, point.lexical.values, point.dense
    ascending = all(a < b for a, b in pairwise(indices))
    bounded = not indices or (indices[0] >= 0 and indices[-1] < 2**32)
    sound = len(indices) == len(values) and ascending and bounded and all(map(math.isfinite, values))
    if not sound or not all(map(math.isfinite, dense or ())):
        raise IndexMismatch(f"The vectors of chunk {point.chunk.chunk_id} are malformed: nothing was published.")
    if len(dense or ()) != dense_size:
        raise IndexMismatch(
            f"A vector has {len(dense or ())} dimensions, the index holds {dense_size}: nothing was published."
        )
