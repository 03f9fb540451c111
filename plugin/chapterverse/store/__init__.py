"""Stores hold the points of indexes. A reader opens a *snapshot*, one whole generation, a publisher a *publication*.

There is one protocol with several implementations. The scheme of `settings.store` chooses one.
"""

from __future__ import annotations

from chapterverse.store.factory import open_store
from chapterverse.store.protocols import CachingStore, GuardedStore, Hit, Publication, Snapshot, Store
from chapterverse.store.scopes import only_head, only_scope

__all__ = [
    "CachingStore",
    "GuardedStore",
    "Hit",
    "Publication",
    "Snapshot",
    "Store",
    "only_head",
    "only_scope",
    "open_store",
]
