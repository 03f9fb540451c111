"""SQL on SQLite and Postgres. The ledger and the kept conversations have one set of statements for both."""

from __future__ import annotations

from chapterverse.database.statements import Database, Faults, Row, Statements, connection_faults

__all__ = ["Database", "Faults", "Row", "Statements", "connection_faults"]
