"""Ledgers record the content from which each file was indexed. A setting chooses one by name.

A ledger only states which files may be skipped. Readers see the generation that the head in the store names. A ledger
that was written for another generation is ignored.
"""

from __future__ import annotations

from chapterverse.ledger.factory import open_ledger
from chapterverse.ledger.rows import IMPORTED, UNREAD, LedgerRow
from chapterverse.ledger.table import Ledger

__all__ = ["IMPORTED", "UNREAD", "Ledger", "LedgerRow", "open_ledger"]
