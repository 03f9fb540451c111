"""Stores: where points live. A reader opens a *snapshot* (one generation, whole); a publisher opens a *publication*.

One protocol, its implementations beside it, chosen by the scheme of `settings.store`.
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
