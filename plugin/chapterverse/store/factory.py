"""Opens the store that a setting names."""

from __future__ import annotations

from pathlib import Path

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse.store.protocols import Store


def open_store(settings: Settings) -> Store:
    """Return the store that `settings.store` names. Nothing is read or sent yet.

    Raises:
        ConfigurationError: the scheme is not one that this release knows, or its place, key or package is missing.
    """
    kind, _, place = settings.store.partition(":")
    if kind == "edge" and place:
        from chapterverse.store.edge import EdgeStore

        return EdgeStore(Path(place))
    if kind == "qdrant":
        from chapterverse.store.qdrant.store import QdrantStore

        return QdrantStore.open(place, settings)
    if kind == "s3":
        from chapterverse.store.s3.store import S3Store

        return S3Store.open(settings.store)
    raise ConfigurationError(f"There is no store {settings.store!r}: use edge:PATH, qdrant:URL or s3://BUCKET/PREFIX.")
