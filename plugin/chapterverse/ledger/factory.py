"""Opens the ledger that a setting names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from chapterverse.errors import ConfigurationError
from chapterverse.ledger.table import Ledger
from chapterverse.settings import DEFAULT_STORE, Settings


def open_ledger(settings: Settings) -> Ledger:
    """Return the ledger that `settings.ledger` names. Nothing is opened yet.

    Without a name it is a file: inside an embedded store, or for a remote store a file of its own in the folder of the
    default store.

    Raises:
        ConfigurationError: the scheme is not one that this release knows, or its package is missing.
    """
    kind, _, place = settings.ledger.partition(":")
    if kind == "sqlite" and place:
        return Ledger.on_sqlite(Path(place))
    if kind in ("postgres", "postgresql") and place:
        return Ledger.on_postgres(settings.ledger)
    if settings.ledger:
        # An address may hold a password.
        raise ConfigurationError(f"There is no ledger of the kind {kind!r}: use sqlite:PATH or postgresql://HOST/NAME.")
    store_kind, _, folder = settings.store.partition(":")
    if store_kind == "edge":
        return Ledger.on_sqlite(Path(folder) / "ledger.sqlite")
    name = hashlib.sha256(settings.store.encode(errors="surrogatepass")).hexdigest()[:16]
    return Ledger.on_sqlite(Path(DEFAULT_STORE.partition(":")[2]) / f"ledger-{name}.sqlite")
