"""Creates collections with their indexes, undoes unfinished publications, and deletes points that nobody can use.

The configuration of a collection that exists is never changed. Readers of a live or recently retired generation see no
difference. So undoing and deleting may fail, and the next publication does it again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.filters import born_after, died_after, died_until, of_scope
from chapterverse.ext.qdrant.record import CollectionLayout, RetiredGeneration, ScopeRecord, scope_key
from chapterverse.ext.qdrant.server import NoCollection
from chapterverse.ext.qdrant.writer import QdrantWriter
from chapterverse.filters import FIELDS, NUMBERS
from chapterverse.model import EmbedderCard
from chapterverse.store import translating_errors

_KEYWORD, _INTEGER = {"type": "keyword"}, {"type": "integer"}
#: Every field that we filter by has an index, so that servers in strict mode take our requests.
_POINT_INDEXES: Mapping[str, Mapping[str, Any]] = {
    # Points of one scope are stored together, because every query is within one scope.
    "head": {"type": "keyword", "is_tenant": True},
    **dict.fromkeys(FIELDS, _KEYWORD),
    **dict.fromkeys(("chunk_id", "embed_hash"), _KEYWORD),
    **dict.fromkeys((*NUMBERS, "born", "died"), _INTEGER),
}
_HEAD_INDEXES: Mapping[str, Mapping[str, Any]] = {
    "lease": _KEYWORD,
    **dict.fromkeys(("lease_until", "epoch"), _INTEGER),
}


def collection_name(place: QdrantAddress, site: str, embedder: EmbedderCard) -> str:
    """Return the name of a site's collection for one embedder. Points of two vector spaces never share a collection."""
    base = place.base(site)
    if not embedder.size:
        return base
    return f"{base}-{hashlib.sha256(embedder.fingerprint.encode()).hexdigest()[:8]}"


def ensure_collection(writer: QdrantWriter, name: str, embedder: EmbedderCard) -> CollectionLayout:
    """Create a collection of points and its indexes, as far as they are missing; return its layout."""
    info = _describe_or_create(writer, name, _points_config(writer.place, embedder))
    _ensure_indexes(writer, name, _POINT_INDEXES, info["payload_schema"])
    with translating_errors(f"The collection {name} is no index: give the index one of its own, by ?collection=NAME."):
        config = info["config"]
        quantization = "scalar" if config.get("quantization_config") else ""
        return CollectionLayout(name, config["params"].get("shard_number") or 1, quantization)


def ensure_heads(writer: QdrantWriter) -> None:
    """Create the collection of heads. It has one shard, so that a conditional write sees every other one."""
    name = writer.place.heads
    info = _describe_or_create(writer, name, {"vectors": {}, **_copies(1, writer.place.replicas)})
    _ensure_indexes(writer, name, _HEAD_INDEXES, info["payload_schema"])


def _describe_or_create(writer: QdrantWriter, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    with contextlib.suppress(NoCollection):
        return writer.describe(name)
    writer.create(name, config)
    return writer.describe(name)


def _ensure_indexes(
    writer: QdrantWriter, name: str, indexes: Mapping[str, Mapping[str, Any]], existing: Mapping[str, Any]
) -> None:
    for field, schema in indexes.items():
        if field not in existing:
            writer.index(name, field, schema)


def _points_config(place: QdrantAddress, embedder: EmbedderCard) -> dict[str, Any]:
    config: dict[str, Any] = {
        "vectors": {"dense": {"size": embedder.size, "distance": "Cosine"}} if embedder.size else {},
        "sparse_vectors": {"lexical": {"modifier": "idf"}},
        **_copies(place.shards, place.replicas),
    }
    if place.quantization:
        return {**config, "quantization_config": {"scalar": {"type": "int8", "always_ram": True}}}
    # Every search is exact, so no graph is built.
    return {**config, "hnsw_config": {"m": 0}}


def _copies(shards: int, replicas: int) -> dict[str, int]:
    """Return the options of a collection's parts and their copies. A write counts when most replicas have it."""
    return {
        "shard_number": shards,
        "replication_factor": replicas,
        "write_consistency_factor": replicas // 2 + 1,
    }


def undo(writer: QdrantWriter, record: ScopeRecord) -> None:
    """Undo the additions and removals since the live generation."""
    key = scope_key(record.scope)
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            writer.delete(collection, born_after(key, record.epoch))
            writer.delete_payload(collection, "died", died_after(key, record.epoch))


def collect_garbage(writer: QdrantWriter, record: ScopeRecord, readable: Iterable[RetiredGeneration]) -> None:
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
                _delete_scope(writer, record, collection)


def count_points(writer: QdrantWriter, record: ScopeRecord) -> int:
    """Return the number of a scope's points, in all generations."""
    count = 0
    for collection in record.collections:
        with contextlib.suppress(NoCollection):
            count += writer.count(collection, of_scope(scope_key(record.scope)))
    return count


def _delete_scope(writer: QdrantWriter, record: ScopeRecord, collection: str) -> None:
    """Delete all points of a scope from a collection, and the collection if no other scope uses it."""
    writer.delete(collection, of_scope(scope_key(record.scope)))
    if writer.count(collection, {}) == 0:
        records = (ScopeRecord.parse(p["payload"]) for p in writer.scroll(writer.place.heads, None, True, False))
        if not any(collection in other.collections for other in records if other.scope != record.scope):
            writer.drop(collection)
