"""The rows of a ledger."""

from __future__ import annotations

from dataclasses import dataclass

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
