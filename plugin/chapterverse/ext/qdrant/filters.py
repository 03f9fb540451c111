"""Filters in the server's own JSON: the points of a scope, those of a generation, and those that may be deleted.

A point is in every generation from its field `born` on, and before that of its field `died`. An absent field matches no
range, so "not died yet" is a condition of `must_not`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from chapterverse.filters import NOTHING, And, Filter, In
from chapterverse.store import is_storable

#: A filter in the form that the server takes in every request.
Where: TypeAlias = Mapping[str, Any]


def equals(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}


def any_of(key: str, values: Sequence[str | int]) -> dict[str, Any]:
    return {"key": key, "match": {"any": list(values)}}


def of_scope(key: str) -> Where:
    """Return the filter of every point of a scope, in all generations."""
    return {"must": [equals("head", key)]}


def visible_in(key: str, epoch: int) -> Where:
    """Return the filter of the points in this generation."""
    return {"must": [equals("head", key), _range("born", "lte", epoch)], "must_not": [_range("died", "lte", epoch)]}


def with_conditions(where: Where, *conditions: Mapping[str, Any]) -> Where:
    """Return a filter with further conditions, all of which must hold."""
    return {**where, "must": [*where["must"], *conditions]}


def with_reader_filter(where: Where, filters: Filter | None) -> Where:
    """Return a filter with the conditions of a reader's filter."""
    return where if filters is None else with_conditions(where, _condition(filters))


def born_after(key: str, epoch: int) -> Where:
    """Return the filter of the points that an unfinished publication added."""
    return {"must": [equals("head", key), _range("born", "gt", epoch)]}


def died_after(key: str, epoch: int) -> Where:
    """Return the filter of the points that an unfinished publication removed."""
    return {"must": [equals("head", key), _range("died", "gt", epoch)]}


def died_until(key: str, epoch: int) -> Where:
    """Return the filter of the points that are neither in this generation nor in a later one."""
    return {"must": [equals("head", key), _range("died", "lte", epoch)]}


def _range(key: str, relation: str, epoch: int) -> dict[str, Any]:
    return {"key": key, "range": {relation: epoch}}


def _condition(filters: Filter) -> dict[str, Any]:
    if isinstance(filters, In):
        return _storable_values(filters.field, filters.values)
    if isinstance(filters, And):
        return {"must": [_condition(part) for part in filters.parts]}
    # The server takes an empty list for no condition.
    return {"should": [_condition(part) for part in filters.parts or (NOTHING,)]}


def _storable_values(name: str, values: Sequence[str | int]) -> dict[str, Any]:
    # A value that can't be stored can't be found either. The server rejects lists of two types.
    texts = [v for v in values if isinstance(v, str) and is_storable(v)]
    numbers = [v for v in values if isinstance(v, int) and is_storable(v)]
    if texts and numbers:
        return {"should": [any_of(name, texts), any_of(name, numbers)]}
    return any_of(name, texts or numbers)
