"""The record of a scope: its live generation, its lease, and the retired generations that are still to be deleted.

It is one point in the collection of heads, and only conditional writes change it. So it is at every moment as one
publisher wrote it. The payload of the scope's points names it in the field `head`, by its key.

A point is in every generation from its field `born` on, and before that of its field `died`. The filters here choose
points by these fields. An absent field matches no range, so "not died yet" is a condition of `must_not`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from chapterverse.filters import NOTHING, And, Filter, In
from chapterverse.model import NAMESPACE, Head, Scope
from chapterverse.store import can_hold, parse_head, translating_errors

#: A filter in the form that the server takes in every request.
Where: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CollectionLayout:
    """The collection of a scope's points, and how it must be searched.

    Attributes:
        collection: its name; "" before the first publication.
        shards: its parts. If there are several, each has its own statistics of terms.
        quantization: as in `QdrantAddress`.
    """

    collection: str = ""
    shards: int = 1
    quantization: str = ""


@dataclass(frozen=True, slots=True)
class RetiredGeneration:
    """A generation that is no longer live. Readers may still read it until `until`, in seconds since the epoch."""

    epoch: int
    collection: str
    until: int


@dataclass(frozen=True, slots=True)
class ScopeRecord:
    """The state of one scope.

    Attributes:
        epoch: the number of the live generation in `born` and `died`. It equals the head's, unless a damaged index was
            rebuilt. Then the head counts from 1 again, and this goes on.
        head: the live head; None before the first publication.
        lease: the token of the publisher; "" without one.
        lease_until: the time at which the lease expires, in seconds since the epoch.
        draft: the collection that is being written; "" for none.
        retired: former generations whose points are not deleted yet.
    """

    scope: Scope
    epoch: int = 0
    head: Head | None = None
    layout: CollectionLayout = field(default_factory=CollectionLayout)
    lease: str = ""
    lease_until: int = 0
    draft: str = ""
    retired: tuple[RetiredGeneration, ...] = ()

    @property
    def collections(self) -> list[str]:
        """Every collection that may hold points of the scope."""
        names = {self.layout.collection, self.draft, *(r.collection for r in self.retired)}
        return sorted(names - {""})

    def payload(self) -> dict[str, Any]:
        """Return the payload that `parse` reads."""
        fields = asdict(self)
        return {**fields.pop("scope"), **fields}

    @classmethod
    def parse(cls, payload: Mapping[str, Any]) -> ScopeRecord:
        """Read a payload.

        Raises:
            IndexMismatch: it was written by a newer release.
            IndexCorrupt: it is not what any release writes.
        """
        with translating_errors("A head on the server is damaged: delete that point, then index again."):
            return cls(
                scope=Scope(_text(payload["site"]), _text(payload["version"])),
                epoch=int(payload["epoch"]),
                # Qdrant removes a field that is set to null.
                head=parse_head(payload["head"]) if payload.get("head") is not None else None,
                layout=CollectionLayout(**payload["layout"]),
                lease=_text(payload["lease"]),
                lease_until=int(payload["lease_until"]),
                draft=_text(payload["draft"]),
                retired=tuple(RetiredGeneration(**r) for r in payload["retired"]),
            )


def scope_key(scope: Scope) -> str:
    """Return the id of a scope's record, which each of its points holds in the field `head`."""
    # The length before each name prevents that two scopes share a key.
    return str(uuid.uuid5(NAMESPACE, f"head {len(scope.site)}:{scope.site}{len(scope.version)}:{scope.version}"))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def equals(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}


def any_of(key: str, values: Sequence[str | int]) -> dict[str, Any]:
    return {"key": key, "match": {"any": list(values)}}


def of_scope(key: str, *conditions: Mapping[str, Any]) -> Where:
    """Return the filter of the points of a scope, in all generations, for which these conditions hold."""
    return {"must": [equals("head", key), *conditions]}


def visible_in(key: str, epoch: int) -> Where:
    """Return the filter of the points in this generation."""
    return {**of_scope(key, until("born", epoch)), "must_not": [until("died", epoch)]}


def with_conditions(where: Where, *conditions: Mapping[str, Any]) -> Where:
    """Return a filter with further conditions, all of which must hold."""
    return {**where, "must": [*where["must"], *conditions]}


def with_reader_filter(where: Where, filters: Filter | None) -> Where:
    """Return a filter with the conditions of a reader's filter."""
    return where if filters is None else with_conditions(where, _condition(filters))


def until(key: str, epoch: int) -> dict[str, Any]:
    """Return the condition that a point was born, or has died, in this generation or before."""
    return {"key": key, "range": {"lte": epoch}}


def after(key: str, epoch: int) -> dict[str, Any]:
    return {"key": key, "range": {"gt": epoch}}


def _condition(filters: Filter) -> dict[str, Any]:
    if isinstance(filters, In):
        return _storable_values(filters.field, filters.values)
    if isinstance(filters, And):
        return {"must": [_condition(part) for part in filters.parts]}
    # The server takes an empty list for no condition.
    return {"should": [_condition(part) for part in filters.parts or (NOTHING,)]}


def _storable_values(name: str, values: Sequence[str | int]) -> dict[str, Any]:
    # A value that can't be stored can't be found either. The server rejects lists of two types.
    texts = [v for v in values if isinstance(v, str) and can_hold(v)]
    numbers = [v for v in values if isinstance(v, int) and can_hold(v)]
    if texts and numbers:
        return {"should": [any_of(name, texts), any_of(name, numbers)]}
    return any_of(name, texts or numbers)
