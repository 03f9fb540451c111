"""The protocol of a ledger, and its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from chapterverse.model import Scope

#: The hash of a file whose content is unknown. It equals no other hash, so the file is read again.
UNREAD = "0" * 64
#: The hash of an imported document, which has no file. A run does not change it.
IMPORTED = "f" * 64


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of the table `document_metadata`.

    Attributes:
        pipeline: the fingerprint of everything that decided the file's chunks, except its content.
        last_indexed_at: the time of the run, ISO 8601 UTC.
    """

    file_path: str
    content_hash: str
    chunk_count: int
    pipeline: str
    generation: int
    last_indexed_at: str


class Ledger(Protocol):
    """A database of the files of each scope, and of the generation that their rows describe."""

    def records(self, scope: Scope) -> dict[str, LedgerRow]:
        """Return the rows of a scope by file path."""
        ...

    def generation(self, scope: Scope) -> int:
        """Return the generation that the rows describe; 0 if there are none."""
        ...

    def token(self, scope: Scope) -> str:
        """Return the token of the head that the rows describe; "" if there are none."""
        ...

    def save(
        self, scope: Scope, generation: int, writes: Iterable[LedgerRow], removals: Iterable[str], token: str = ""
    ) -> None:
        """Write and delete rows and set the scope's generation and its head's token, all in one transaction."""
        ...
