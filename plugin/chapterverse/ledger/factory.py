"""Opens the ledger that a setting names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from chapterverse.extensions import open_offer
from chapterverse.ledger.table import Ledger
from chapterverse.settings import DEFAULT_STORE, Settings


def open_ledger(settings: Settings) -> Ledger:
    """Return the ledger that `settings.ledger` names. Nothing is opened yet.

    Without a name it is a file: inside an embedded store, or for a remote store a file of its own in the folder of the
    default store. Raises as `open_offer` does.
    """
    if settings.ledger:
        ledger: Ledger = open_offer("ledger", settings)
        return ledger
    store_kind, _, folder = settings.store.partition(":")
    if store_kind == "edge":
        return Ledger.on_sqlite(Path(folder) / "ledger.sqlite")
    name = hashlib.sha256(settings.store.encode(errors="surrogatepass")).hexdigest()[:16]
    return Ledger.on_sqlite(Path(DEFAULT_STORE.partition(":")[2]) / f"ledger-{name}.sqlite")
