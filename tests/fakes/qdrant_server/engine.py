"""Collections over the embedded engine, which is the server's own, with one shard each, in this process."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import qdrant_edge as edge
from pydantic import TypeAdapter
from qdrant_client.http import models

from fakes.qdrant_server.wire import Refused, filter_of, point_id, point_of, query_of, record, scored, selector

#: The engine wants a vector in every shard, the server does not.
_UNUSED = "unused"
_CONFIG = "collection.json"
_SELECTOR: TypeAdapter[Any] = TypeAdapter(models.PointIdsList | models.FilterSelector)
_KINDS = {
    models.PayloadSchemaType.KEYWORD: edge.PayloadSchemaType.Keyword,
    models.PayloadSchemaType.INTEGER: edge.PayloadSchemaType.Integer,
    models.PayloadSchemaType.BOOL: edge.PayloadSchemaType.Bool,
}
_MODES = {
    None: edge.UpdateMode.Upsert,
    models.UpdateMode.UPSERT: edge.UpdateMode.Upsert,
    models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
    models.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
}


class Collection:
    """One collection; every method takes the body of the request of its name and returns the `result` of the reply."""

    def __init__(self, folder: Path, config: models.CreateCollection, shard: Any) -> None:
        self.config = config
        self._folder = folder
        self._shard = shard
        vectors: Any = config.vectors or {}
        self._sizes: dict[str, int] = {name: params.size for name, params in vectors.items()}
        self._sparse = list(config.sparse_vectors or {})

    @classmethod
    def create(cls, folder: Path, body: Mapping[str, Any]) -> Collection:
        config = models.CreateCollection.model_validate(body)
        vectors: Any = config.vectors or {}
        dense = {n: edge.EdgeVectorParams(size=p.size, distance=edge.Distance.Cosine) for n, p in vectors.items()}
        sparse = {
            name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if params.modifier else None)
            for name, params in (config.sparse_vectors or {}).items()
        }
        if not dense and not sparse:
            sparse = {_UNUSED: edge.EdgeSparseVectorParams()}
        folder.mkdir(parents=True)
        shard = edge.EdgeShard.create(str(folder / "shard"), edge.EdgeConfig(vectors=dense, sparse_vectors=sparse))
        (folder / _CONFIG).write_text(config.model_dump_json(exclude_none=True))
        return cls(folder, config, shard)

    @classmethod
    def load(cls, folder: Path) -> Collection:
        config = models.CreateCollection.model_validate_json((folder / _CONFIG).read_text())
        return cls(folder, config, edge.EdgeShard.load(str(folder / "shard")))

    def close(self) -> None:
        self._shard.close()

    def drop(self) -> None:
        self.close()
        shutil.rmtree(self._folder)

    def info(self) -> dict[str, Any]:
        info = self._shard.info()
        schema = {
            name: {"data_type": str(found.data_type).rsplit(".")[-1].lower(), "points": found.points}
            for name, found in info.payload_schema.items()
        }
        params = self.config.model_dump(mode="json", exclude_none=True, exclude={"hnsw_config", "quantization_config"})
        return {
            "status": "green",
            "optimizer_status": "ok",
            "points_count": info.points_count,
            "segments_count": info.segments_count,
            "payload_schema": schema,
            "config": {
                "params": params,
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
                "quantization_config": self.config.model_dump(mode="json", exclude_none=True).get(
                    "quantization_config"
                ),
            },
        }

    def index(self, body: Any) -> dict[str, Any]:
        made = models.CreateFieldIndex.model_validate(body)
        schema: Any = made.field_schema
        kind = schema if isinstance(schema, models.PayloadSchemaType) else models.PayloadSchemaType(schema.type.value)
        return self._update(edge.UpdateOperation.create_field_index(made.field_name, _KINDS[kind]))

    def upsert(self, body: Any) -> dict[str, Any]:
        made = models.PointsList.model_validate(body)
        points = [point_of(p, self._sizes, self._sparse) for p in made.points]
        where = filter_of(made.update_filter)
        return self._update(edge.UpdateOperation.upsert_points(points, where, _MODES[made.update_mode]))

    def set_payload(self, body: Any) -> dict[str, Any]:
        made = models.SetPayload.model_validate(body)
        return self._update(edge.UpdateOperation.set_payload_by_filter(selector(made), made.payload))

    def delete_payload(self, body: Any) -> dict[str, Any]:
        made = models.DeletePayload.model_validate(body)
        return self._update(edge.UpdateOperation.delete_payload_by_filter(selector(made), made.keys))

    def delete(self, body: Any) -> dict[str, Any]:
        made = _SELECTOR.validate_python(body)
        return self._update(edge.UpdateOperation.delete_points_by_filter(selector(made)))

    def scroll(self, body: Any) -> dict[str, Any]:
        made = models.ScrollRequest.model_validate(body)
        wanted: Any = made.with_payload if made.with_payload is not None else True
        found, after = self._shard.scroll(
            edge.ScrollRequest(
                offset=None if made.offset is None else point_id(made.offset),
                limit=made.limit,
                filter=filter_of(made.filter),
                with_payload=wanted,
                with_vector=made.with_vector or False,
            )
        )
        return {"points": [record(r) for r in found], "next_page_offset": None if after is None else str(after)}

    def count(self, body: Any) -> dict[str, Any]:
        made = models.CountRequest.model_validate(body)
        return {"count": self._shard.count(edge.CountRequest(exact=True, filter=filter_of(made.filter)))}

    def retrieve(self, body: Any) -> list[dict[str, Any]]:
        made = models.PointRequest.model_validate(body)
        wanted: Any = made.with_payload if made.with_payload is not None else True
        found = self._shard.retrieve([point_id(i) for i in made.ids], wanted, made.with_vector or False)
        return [record(r) for r in found]

    def query(self, body: Any) -> dict[str, Any]:
        made = models.QueryRequest.model_validate(body)
        return {"points": [scored(p) for p in self._shard.query(query_of(made, self._sizes))]}

    def query_batch(self, body: Any) -> list[dict[str, Any]]:
        made = models.QueryRequestBatch.model_validate(body)
        # One by one: the batch of the embedded engine is another path, and this is the reference.
        return [self.query(q.model_dump(exclude_unset=True)) for q in made.searches]

    def facet(self, body: Any) -> dict[str, Any]:
        made = models.FacetRequest.model_validate(body)
        found = self._shard.facet(
            edge.FacetRequest(made.key, made.limit or 10, exact=bool(made.exact), filter=filter_of(made.filter))
        )
        return {"hits": [{"value": hit.value, "count": hit.count} for hit in found.hits]}

    def _update(self, operation: Any) -> dict[str, Any]:
        self._shard.update(operation)
        return {"operation_id": 0, "status": "completed"}


class Engine:
    """All collections of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.collections: dict[str, Collection] = {
            unquote(path.parent.name): Collection.load(path.parent) for path in sorted(folder.glob(f"*/{_CONFIG}"))
        }

    def create(self, name: str, body: Any) -> bool:
        if name in self.collections:
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        if not 0 < len(name.encode()) <= 255 or set(name) & set('<>:"/\\|?*\0\x1f'):
            raise Refused(422, "Validation error: collection name is invalid")
        self.collections[name] = Collection.create(self._folder / _folder_name(name), body)
        return True

    def drop(self, name: str) -> bool:
        found = self.collections.pop(name, None)
        if found:
            found.drop()
        return found is not None

    def collection(self, name: str) -> Collection:
        try:
            return self.collections[name]
        except KeyError:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!") from None

    def names(self) -> Iterator[dict[str, str]]:
        return ({"name": name} for name in sorted(self.collections))

    def close(self) -> None:
        for collection in self.collections.values():
            collection.close()


def _folder_name(name: str) -> str:
    quoted = quote(name, safe="").replace(".", "%2E")
    return quoted if len(quoted) <= 200 else f"{quoted[:180]}{hashlib.sha256(name.encode()).hexdigest()[:16]}"
