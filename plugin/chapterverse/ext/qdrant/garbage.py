"""Undoes unfinished publications, and deletes points that no reader can still use.

Readers of a live or recently retired generation see no difference. So all of it may fail, and the next publication does
it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from chapterverse.ext.qdrant.filters import born_after, died_after, died_until, of_scope
from chapterverse.ext.qdrant.record import RetiredGeneration, ScopeRecord, scope_key
from chapterverse.ext.qdrant.server import NoCollection, QdrantServer
from chapterverse.ext.qdrant.writer import QdrantWriter


def undo(writer: QdrantWriter, record: ScopeRecord) -> None:
    """Undo the additions and removals since the live generation."""
    key = scope_key(record.scope)
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            writer.delete(collection, born_after(key, record.epoch))
            writer.delete_payload(collection, "died", died_after(key, record.epoch))


def collect_garbage(
    writer: QdrantWriter, server: QdrantServer, record: ScopeRecord, readable: Iterable[RetiredGeneration]
) -> None:
    """Delete the points that are neither in the live generation nor in one of the `readable` retired ones."""
    key, generations = scope_key(record.scope), [*readable]
    if record.head is not None:
        generations.append(RetiredGeneration(record.epoch, record.layout.collection, 0))
    for collection in record.collections:
        epochs = [r.epoch for r in generations if r.collection == collection]
        with contextlib.suppress(NoCollection):
            if epochs:
                writer.delete(collection, died_until(key, min(epochs)))
            else:
                _delete_scope(writer, server, record, collection)


def count_points(writer: QdrantWriter, record: ScopeRecord) -> int:
    """Return the number of a scope's points, in all generations."""
    count = 0
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            count += writer.count(collection, of_scope(scope_key(record.scope)))
    return count


def _delete_scope(writer: QdrantWriter, server: QdrantServer, record: ScopeRecord, collection: str) -> None:
    """Delete all points of a scope from a collection, and the collection if no other scope uses it."""
    writer.delete(collection, of_scope(scope_key(record.scope)))
    if writer.count(collection, {}) == 0:
        records = (ScopeRecord.parse(p["payload"]) for p in server.scroll(writer.place.heads, None, True, False))
        if not any(collection in other.collections for other in records if other.scope != record.scope):
            writer.drop(collection)
