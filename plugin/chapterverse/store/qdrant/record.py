"""One point in the collection of heads: what readers of a scope see, who is publishing, what is still to be forgotten.

The point is changed by conditional writes alone, so it is at every moment what one publisher meant.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from chapterverse.model import NAMESPACE, Head, Scope
from chapterverse.store.heads import head_of, translating_errors


@dataclass(frozen=True, slots=True)
class Layout:
    """Where points lie and how they must be searched.

    Attributes:
        collection: its name; "" where nothing was published yet.
        shards: with more than one, a term's statistics are of a part only.
        quantization: as in `QdrantAddress`.
    """

    collection: str = ""
    shards: int = 1
    quantization: str = ""


@dataclass(frozen=True, slots=True)
class RetiredGeneration:
    """A generation that is no longer live, and that readers may hold until `until` (seconds of the epoch)."""

    epoch: int
    collection: str
    until: int


@dataclass(frozen=True, slots=True)
class QdrantHead:
    """The state of one scope.

    Attributes:
        epoch: number of the live generation in `born` and `died`. It is the head's own number, but where a damaged
            index was built anew: there the head counts from 1 again and this goes on.
        head: the live head; None before the first publication.
        lease: token of the publisher; "" without one.
        lease_until: when that token may be taken over, in seconds of the epoch.
        draft: the collection that is being written, "" for none.
        retired: former generations whose points are still there.
    """

    scope: Scope
    epoch: int = 0
    head: Head | None = None
    layout: Layout = field(default_factory=Layout)
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
        """Return its stored form; `of` is the inverse."""
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
    def of(cls, payload: Mapping[str, Any]) -> QdrantHead:
        """Read the stored form.

        Raises:
            IndexMismatch: it was written by a newer release.
            IndexCorrupt: it is not what any release writes.
        """
        with translating_errors("A head on the server is damaged: delete that point, then index again."):
            return cls(
                scope=Scope(_text(payload["site"]), _text(payload["version"])),
                epoch=int(payload["epoch"]),
                # Qdrant removes a field that is set to null.
                head=head_of(payload["head"]) if payload.get("head") is not None else None,
                layout=Layout(**payload["layout"]),
                lease=_text(payload["lease"]),
                lease_until=int(payload["lease_until"]),
                draft=_text(payload["draft"]),
                retired=tuple(RetiredGeneration(**r) for r in payload["retired"]),
            )


def key_of(scope: Scope) -> str:
    """Return the id of a scope's record, which each of its points carries as `head`."""
    # Length-prefixed, so that no two scopes share one name.
    return str(uuid.uuid5(NAMESPACE, f"head {len(scope.site)}:{scope.site}{len(scope.version)}:{scope.version}"))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
