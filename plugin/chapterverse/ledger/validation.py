"""Validates rows before a database sees them, so that every ledger rejects the same rows in the same words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from chapterverse.errors import IndexFault
from chapterverse.ledger.protocols import LedgerRow
from chapterverse.model import sound

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

#: The columns' widths. The databases' own constraints repeat it for whoever else may write to them.
_RULES: Mapping[str, Callable[[Any], bool]] = {
    "file_path": lambda v: isinstance(v, str) and 1 <= len(v) <= 512 and sound(v) == v,
    "content_hash": lambda v: isinstance(v, str) and len(v) == 64 and v.isalnum() and v.isascii(),
    "chunk_count": lambda v: isinstance(v, int) and 0 <= v < 2**31,
    "pipeline": lambda v: isinstance(v, str) and len(v) <= 64 and sound(v) == v,
    "generation": lambda v: isinstance(v, int) and 0 <= v < 2**63,
    "last_indexed_at": lambda v: isinstance(v, str) and _TIME.fullmatch(v) is not None,
}


def checked(records: Iterable[LedgerRow]) -> Iterator[LedgerRow]:
    """Yield the rows.

    Raises:
        IndexFault: at the first one that is out of contract.
    """
    for record in records:
        for name, fits in _RULES.items():
            if not fits(getattr(record, name)):
                raise IndexFault(f"The {name} of {record.file_path!a:.80} is nothing that a ledger holds.")
        yield record
