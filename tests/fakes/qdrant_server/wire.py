"""Conversion between the server's JSON and the embedded engine's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import qdrant_edge as edge
from qdrant_client.http import models


class Refused(Exception):
    """What the real server answers with a status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def point_id(raw: Any) -> Any:
    """Return an id as the engine takes it: a number or a UUID."""
    if isinstance(raw, int):
        return raw
    try:
        return UUID(str(raw))
    except ValueError:
        raise Refused(400, f"Format error in JSON body: value {raw} is not a valid point ID") from None


def filter_of(made: models.Filter | None) -> Any:
    if made is None:
        return None
    must, should, must_not = (_conditions(getattr(made, name)) or None for name in ("must", "should", "must_not"))
    return edge.Filter(must=must, should=should, must_not=must_not)


def selector(made: models.FilterSelector | models.PointIdsList | models.SetPayload | models.DeletePayload) -> Any:
    """Return what a write is meant for as one filter."""
    ids = getattr(made, "points", None)
    if ids is not None:
        return edge.Filter(must=[edge.HasIdCondition({point_id(i) for i in ids})])
    where = getattr(made, "filter", None)
    if where is None:
        raise Refused(422, "Either list of ids or filter must be provided")
    return filter_of(where)


def query_of(made: models.QueryRequest, sizes: Mapping[str, int]) -> Any:
    vector: Any = made.query.nearest if isinstance(made.query, models.NearestQuery) else made.query
    if isinstance(vector, models.SparseVector):
        _check_sparse(vector)
        vector = edge.SparseVector(vector.indices, vector.values)
    elif isinstance(vector, list):
        size = sizes.get(made.using or "")
        if size is None:
            raise Refused(400, f"Wrong input: Not existing vector name error: {made.using}")
        if len(vector) != size:
            raise Refused(400, _wrong_size(size, len(vector)))
    else:
        raise Refused(422, "This fake knows queries by a sparse or a dense vector only.")
    return edge.QueryRequest(
        query=edge.Query.Nearest(vector, using=made.using),
        limit=made.limit or 10,
        filter=filter_of(made.filter),
        with_payload=_payload(made.with_payload),
        with_vector=made.with_vector or False,
        params=_params(made.params),
    )


def point_of(made: models.PointStruct, sizes: Mapping[str, int], sparse: Sequence[str]) -> Any:
    """Return a point, having checked all that would harm the engine."""
    vectors: dict[str, Any] = {}
    given: Any = made.vector
    if not isinstance(given, dict):
        raise Refused(400, "Wrong input: Vector params for are not specified in config")
    for name, vector in given.items():
        if name in sparse and isinstance(vector, models.SparseVector):
            _check_sparse(vector)
            vectors[name] = edge.SparseVector(vector.indices, vector.values)
        elif name in sizes and isinstance(vector, list):
            if len(vector) != sizes[name]:
                raise Refused(400, _wrong_size(sizes[name], len(vector)))
            vectors[name] = vector
        else:
            raise Refused(400, f"Wrong input: Not existing vector name error: {name}")
    return edge.Point(point_id(made.id), vectors, made.payload or {})


def scored(point: Any) -> dict[str, Any]:
    return {**record(point), "version": point.version, "score": point.score}


def record(point: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"id": str(point.id) if isinstance(point.id, UUID) else point.id}
    if point.payload is not None:
        out["payload"] = point.payload
    if point.vector is not None:
        out["vector"] = {name: _vector(v) for name, v in point.vector.items()}
    return out


def _vector(vector: Any) -> Any:
    if isinstance(vector, edge.SparseVector):
        return {"indices": vector.indices, "values": vector.values}
    return list(vector)


def _payload(wanted: Any) -> Any:
    return wanted if isinstance(wanted, bool | list) else False


def _params(made: models.SearchParams | None) -> Any:
    if made is None:
        return None
    idf = None
    if isinstance(made.idf, models.IdfCorpusParams):
        idf = edge.IdfParams(corpus=filter_of(made.idf.corpus))
    return edge.SearchParams(exact=bool(made.exact), idf=idf)


def _conditions(given: Any) -> list[Any]:
    conditions = given if isinstance(given, list) else [] if given is None else [given]
    return [_condition(c) for c in conditions]


def _condition(made: Any) -> Any:
    if isinstance(made, models.Filter):
        return filter_of(made)
    if isinstance(made, models.HasIdCondition):
        return edge.HasIdCondition({point_id(i) for i in made.has_id})
    if isinstance(made, models.FieldCondition) and isinstance(made.range, models.Range):
        bounds = made.range.model_dump(exclude_none=True)
        return edge.FieldCondition(made.key, range=edge.RangeFloat(**bounds))
    if isinstance(made, models.FieldCondition) and isinstance(made.match, models.MatchValue):
        return edge.FieldCondition(made.key, match=edge.MatchValue(made.match.value))
    if isinstance(made, models.FieldCondition) and isinstance(made.match, models.MatchAny):
        return edge.FieldCondition(made.key, match=edge.MatchAny(made.match.any))
    raise Refused(422, f"This fake does not know the condition {type(made).__name__}.")


def _check_sparse(vector: models.SparseVector) -> None:
    if len(vector.indices) != len(vector.values):
        raise Refused(422, "Validation error: must be the same length as indices")
    if len(set(vector.indices)) != len(vector.indices):
        raise Refused(422, "Validation error: must be unique")
    if any(not 0 <= i < 2**32 for i in vector.indices):
        raise Refused(400, "Format error in JSON body: invalid value, expected u32")


def _wrong_size(expected: int, got: int) -> str:
    return f"Wrong input: Vector dimension error: expected dim: {expected}, got {got}"
