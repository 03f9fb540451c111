"""SQL on SQLite and Postgres: the ledger and the kept conversations write their statements once for both."""

from __future__ import annotations

from chapterverse.database.statements import Database, Faults, Row, Statements

__all__ = ["Database", "Faults", "Row", "Statements"]
