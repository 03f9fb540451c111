"""Ledgers record which file was indexed from which content. A setting chooses one by name.

The head in the store is the only truth about what readers see; the ledger only says which files may be skipped. It
carries the generation it was written for and is worth nothing when the head's differs.
"""

from __future__ import annotations

from chapterverse.ledger.factory import open_ledger
from chapterverse.ledger.protocols import IMPORTED, UNREAD, Ledger, LedgerRow

__all__ = ["IMPORTED", "UNREAD", "Ledger", "LedgerRow", "open_ledger"]
