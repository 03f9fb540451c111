"""Ledgers: which file was indexed from which content. One protocol, its implementations beside it.

The head in the store is the only truth about what readers see; the ledger only says which files may be skipped. It
carries the generation it was written for and is worth nothing when the head's differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chapterverse.errors import ConfigurationError
from chapterverse.model import Scope
from chapterverse.settings import DEFAULT_STORE, Settings

#: The hash of a file whose content is not known: it equals no other, so the file is read again.
UNREAD = "0" * 64


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of `document_metadata` (DESIGN 4.2).

    Attributes:
        pipeline: fingerprint of everything but the content that decided the file's chunks.
        last_indexed_at: ISO 8601 UTC.
    """

    file_path: str
    content_hash: str
    chunk_count: int
    pipeline: str
    generation: int
    last_indexed_at: str


class Ledger(Protocol):
    def records(self, scope: Scope) -> dict[str, LedgerRow]:
        """Return the rows of a scope by file path."""
        ...

    def generation(self, scope: Scope) -> int:
        """Return the generation that the rows describe; 0 when there are none."""
        ...

    def token(self, scope: Scope) -> str:
        """Return the token of the head that the rows describe; "" when there are none."""
        ...

    def save(
        self, scope: Scope, generation: int, changed: Iterable[LedgerRow], removed: Iterable[str], token: str = ""
    ) -> None:
        """Write and delete rows and set the scope's generation and its head's token, all in one transaction."""
        ...


def open_ledger(settings: Settings) -> Ledger:
    """Return the ledger that `settings.ledger` names; nothing is opened yet.

    Without a name it is a file: inside an embedded store, else in the folder of the default one, where every remote
    store has a file of its own.

    Raises:
        ConfigurationError: the scheme is not one that this release knows, or its package is missing.
    """
    from chapterverse.ledger.sqlite import SqliteLedger

    kind, _, place = settings.ledger.partition(":")
    if kind == "sqlite" and place:
        return SqliteLedger(Path(place))
    if kind in ("postgres", "postgresql") and place:
        from chapterverse.ledger.postgres import PostgresLedger

        return PostgresLedger.open(settings.ledger)
    if settings.ledger:
        # An address may hold a password.
        raise ConfigurationError(f"There is no ledger of the kind {kind!r}: use sqlite:PATH or postgresql://HOST/NAME.")
    store_kind, _, folder = settings.store.partition(":")
    if store_kind == "edge":
        return SqliteLedger(Path(folder) / "ledger.sqlite")
    name = hashlib.sha256(settings.store.encode(errors="surrogatepass")).hexdigest()[:16]
    return SqliteLedger(Path(DEFAULT_STORE.partition(":")[2]) / f"ledger-{name}.sqlite")
