"""Taking back what a publication left half done, and forgetting what no reader can hold any more.

Nothing here changes what a reader of a live or recently retired generation sees, so all of it may fail and be done
again by the next publication.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from chapterverse.store.qdrant.filters import born_after, died_after, died_until, of_head
from chapterverse.store.qdrant.record import QdrantHead, RetiredGeneration, key_of
from chapterverse.store.qdrant.server import NoCollection, QdrantServer
from chapterverse.store.qdrant.writer import QdrantWriter


def undo(writer: QdrantWriter, record: QdrantHead) -> None:
    """Undo the additions and removals since the live generation."""
    key = key_of(record.scope)
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            writer.delete(collection, born_after(key, record.epoch))
            writer.delete_payload(collection, "died", died_after(key, record.epoch))


def collect_garbage(
    writer: QdrantWriter, server: QdrantServer, record: QdrantHead, kept_generations: Iterable[RetiredGeneration]
) -> None:
    """Forget the points that neither the live generation nor one of `kept_generations` holds."""
    key, generations = key_of(record.scope), [*kept_generations]
    if record.head is not None:
        generations.append(RetiredGeneration(record.epoch, record.layout.collection, 0))
    for collection in record.collections:
        readable = [r.epoch for r in generations if r.collection == collection]
        with contextlib.suppress(NoCollection):
            if readable:
                writer.delete(collection, died_until(key, min(readable)))
            else:
                _forget(writer, server, record, collection)


def total(writer: QdrantWriter, record: QdrantHead) -> int:
    """Return how many points of a scope there are, in all generations."""
    count = 0
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            count += writer.count(collection, of_head(key_of(record.scope)))
    return count


def _forget(writer: QdrantWriter, server: QdrantServer, record: QdrantHead, collection: str) -> None:
    """Remove all of a scope from a collection, and the collection if no other scope uses it."""
    writer.delete(collection, of_head(key_of(record.scope)))
    if writer.count(collection, {}) == 0:
        records = (QdrantHead.of(p["payload"]) for p in server.scroll(writer.place.heads, None, True, False))
        if not any(collection in other.collections for other in records if other.scope != record.scope):
            writer.drop(collection)
