"""Opens the store that a setting names."""

from __future__ import annotations

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse.store.protocols import Store


def open_store(settings: Settings) -> Store:
    """Return the store that `settings.store` names. Nothing is read or sent yet. Raises as `open_offer` does."""
    store: Store = open_offer("store", settings)
    return store
