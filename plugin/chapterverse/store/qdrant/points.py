"""Points as the server takes them."""

from __future__ import annotations

import uuid
from typing import Any

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
