"""Conversations in an SQLite file. Implements `chapterverse_api.records.database.Database`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from chapterverse_api.records.database import Row, Statements
from chapterverse_api.records.table import schema
from chapterverse_api.records.types import RecordsFault

T = TypeVar("T")

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNUSABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class SqliteDatabase:
    """A file of its own, made with its folder at the first write, and readable for its owner alone.

    Every call opens it anew, so that one that was removed meanwhile is missed at once.

    Args:
        patience: seconds to wait while another process writes.
    """

    skipping = ""

    def __init__(self, path: Path, patience: float = 2.0) -> None:
        self._path = path
        self._patience = patience

    def run(self, work: Callable[[Statements], T], *, otherwise: T | None = None) -> T:
        try:
            if otherwise is not None and not self._path.exists():
                return otherwise
            with self._transaction() as db:
                return work(_Statements(db))
        except OSError as error:
            raise RecordsFault(f"The conversations in {self._path} can't be used ({error.strerror}).") from error
        except sqlite3.Error as error:
            raise self._explained(error) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None)
        with contextlib.closing(connection) as db:
            # What is forgotten is overwritten, and not only left out of the table.
            db.execute("PRAGMA secure_delete = ON")
            for statement in schema("INTEGER PRIMARY KEY AUTOINCREMENT"):
                db.execute(statement)
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    def _explained(self, error: sqlite3.Error) -> RecordsFault:
        # The low byte is the kind of error, the rest its details.
        kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if kind in _BUSY:
            return RecordsFault(f"Another process is writing to the conversations in {self._path}: wait for it.")
        if kind in _UNUSABLE:
            return RecordsFault(f"The conversations in {self._path} can't be used ({error}).")
        return RecordsFault(f"The file {self._path} is no database of conversations: remove it, or name another.")


class _Statements:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._db.execute(sql, values).fetchall()

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        return self._db.execute(sql, values).rowcount
