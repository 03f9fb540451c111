"""Stores: where points live. A reader opens a *snapshot* (one generation, whole); a publisher opens a *publication*.

One protocol, its implementations beside it, chosen by the scheme of `settings.store`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chapterverse.errors import ConfigurationError
from chapterverse.model import Head, Scope
from chapterverse.settings import Settings
from chapterverse.store.protocols import CachingStore, Guarded, Hit, Publication, Snapshot, Store

__all__ = [
    "CachingStore",
    "Guarded",
    "Hit",
    "Publication",
    "Snapshot",
    "Store",
    "only_head",
    "only_scope",
    "open_store",
]


def open_store(settings: Settings) -> Store:
    """Return the store that `settings.store` names; nothing is read or sent yet.

    Raises:
        ConfigurationError: the scheme is not one that this release knows, or its place, key or package is missing.
    """
    kind, _, place = settings.store.partition(":")
    if kind == "edge" and place:
        from chapterverse.store.edge import EdgeStore

        return EdgeStore(Path(place))
    if kind == "qdrant":
        from chapterverse.store.qdrant import QdrantStore

        return QdrantStore.open(place, settings)
    if kind == "s3":
        from chapterverse.store.s3 import S3Store

        return S3Store.open(settings.store)
    raise ConfigurationError(f"There is no store {settings.store!r}: use edge:PATH, qdrant:URL or s3://BUCKET/PREFIX.")


def only_scope(store: Store, site: str = "", version: str | None = None) -> Scope:
    """Return the scope that `site` and `version` name; either may be left out where the store holds just one.

    Raises:
        IndexMissing: nothing matches.
        ConfigurationError: more than one matches; the message lists them.
    """
    return only_head(store.heads(), site, version).scope


def only_head(heads: Sequence[Head], site: str = "", version: str | None = None) -> Head:
    """Return the one of these heads that `site` and `version` name; raises as `only_scope` does."""
    from chapterverse.errors import IndexMissing

    matches = [h for h in heads if (not site or h.site == site) and (version is None or h.version == version)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(f"{h.site!r} version {h.version!r}" for h in matches)
        raise ConfigurationError(f"The store holds {names}: say which with --site and --docs-version.")
    if heads:
        names = ", ".join(f"{h.site!r} version {h.version!r}" for h in heads)
        raise IndexMissing(f"The store holds nothing for that site and version, only {names}.")
    raise IndexMissing("There is no index yet: run `mkdocs build` with the plugin, or `chapterverse index SITE_DIR`.")
