"""The record of a scope: its live generation, its lease, and the retired generations that are still to be deleted.

It is one point in the collection of heads, and only conditional writes change it. So it is at every moment as one
publisher wrote it. The payload of the scope's points names it in the field `head`, by its key.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from chapterverse.model import NAMESPACE, Head, Scope
from chapterverse.store import parse_head, translating_errors


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
        return {
            "site": self.scope.site,
            "version": self.scope.version,
            "epoch": self.epoch,
            "head": None if self.head is None else asdict(self.head),
            "layout": asdict(self.layout),
            "lease": self.lease,
            "lease_until": self.lease_until,
            "draft": self.draft,
            "retired": [asdict(r) for r in self.retired],
        }

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
