"""Filters in the server's own JSON: which points belong to a scope, live in a generation, or may be forgotten.

A point is born in one generation and may die in a later one; it is in every generation between. A field that is absent
matches no range, so "not died yet" is a condition of `must_not`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from chapterverse.filters import NOTHING, And, Filter, In
from chapterverse.store.points import is_storable

#: One filter as the server takes it in every request.
Where: TypeAlias = Mapping[str, Any]


def equals(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}


def among(key: str, values: Sequence[str | int]) -> dict[str, Any]:
    return {"key": key, "match": {"any": list(values)}}


def of_head(key: str) -> Where:
    """Every point of a scope, dead and unborn ones too."""
    return {"must": [equals("head", key)]}


def view(key: str, epoch: int) -> Where:
    """What a reader of this generation sees."""
    return {"must": [equals("head", key), _range("born", "lte", epoch)], "must_not": [_range("died", "lte", epoch)]}


def both(where: Where, *conditions: Mapping[str, Any]) -> Where:
    """Return a filter with further conditions that must hold."""
    return {**where, "must": [*where["must"], *conditions]}


def narrow(where: Where, filters: Filter | None) -> Where:
    """Return a filter with a reader's own."""
    return where if filters is None else both(where, _condition(filters))


def born_after(key: str, epoch: int) -> Where:
    """What an unfinished publication added."""
    return {"must": [equals("head", key), _range("born", "gt", epoch)]}


def died_after(key: str, epoch: int) -> Where:
    """What an unfinished publication removed."""
    return {"must": [equals("head", key), _range("died", "gt", epoch)]}


def died_until(key: str, epoch: int) -> Where:
    """What no reader of this generation or a later one sees."""
    return {"must": [equals("head", key), _range("died", "lte", epoch)]}


def _range(key: str, relation: str, epoch: int) -> dict[str, Any]:
    return {"key": key, "range": {relation: epoch}}


def _condition(filters: Filter) -> dict[str, Any]:
    if isinstance(filters, In):
        return _storable(filters.field, filters.values)
    if isinstance(filters, And):
        return {"must": [_condition(part) for part in filters.parts]}
    # To the server an empty list is no condition at all.
    return {"should": [_condition(part) for part in filters.parts or (NOTHING,)]}


def _storable(name: str, values: Sequence[str | int]) -> dict[str, Any]:
    # A value that can't be stored can't be found either, and the server refuses lists of two types.
    texts = [v for v in values if isinstance(v, str) and is_storable(v)]
    numbers = [v for v in values if isinstance(v, int) and is_storable(v)]
    if texts and numbers:
        return {"should": [among(name, texts), among(name, numbers)]}
    return among(name, texts or numbers)
