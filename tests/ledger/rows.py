"""Rows, and the form of every error, for the tests of all ledgers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chapterverse.errors import ChapterVerseError
from chapterverse.ledger import LedgerRow
from chapterverse.model import Scope

DOCS = Scope("docs")
NEXT = Scope("docs", "2.0")


def row(path: str, **fields: Any) -> LedgerRow:
    made = LedgerRow(path, "a" * 64, 3, "b" * 64, 1, "2026-01-02T03:04:05Z")
    return replace(made, **fields)


A, B, C = (row(f"{name}.md") for name in "abc")


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, ChapterVerseError) and "\n" not in text and text.endswith((".", ").")) and len(text) < 400
