"""Stores with shorter pauses and unchanged behavior, so that tests don't wait."""

from __future__ import annotations

import time
from pathlib import Path

from chapterverse.ext.qdrant.lease import LeaseTimes
from chapterverse.ext.qdrant.server import QdrantRetry
from chapterverse.ext.qdrant.store import QdrantStore
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.store import S3Store
from chapterverse.settings import Settings
from chapterverse.store import Store, open_store


def impatient_store(settings: Settings, folder: Path, ahead: int) -> Store:
    """Return the store that the settings name.

    Args:
        folder: where it may keep what it downloads.
        ahead: seconds that have passed since other publishers were last heard of.
    """
    store = open_store(settings)
    if isinstance(store, QdrantStore):
        times = LeaseTimes(clock=lambda: time.time() + ahead)
        return QdrantStore(store.place, times, QdrantRetry(first_pause=0.01, max_pause=0.05))
    if isinstance(store, S3Store):
        # A lease of no seconds is over as soon as nobody is there to renew it.
        return S3Store(Bucket.open(settings.store), Cache(folder / "cache"), lease_seconds=0)
    return store
