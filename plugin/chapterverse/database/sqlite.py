"""A database in one SQLite file. Implements `chapterverse.database.Database`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

from chapterverse.database.statements import Faults, Prepare, Row, Statements, fault

T = TypeVar("T")

_FAILURES = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "busy"),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR), "unusable"
    ),
}


def failure(error: sqlite3.Error) -> str:
    """Return the name of a failure in `Faults`: "busy", "unusable" or "damaged"."""
    # The low byte is the kind of error, the rest its details; an error of Python itself has none.
    return _FAILURES.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF, "damaged")


def make_file(path: Path, mode: int = 0o600) -> None:
    """Make an empty file and its folder, unless it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode)


class SqliteDatabase:
    """A file that is made with its folder at the first write: reading leaves no trace.

    Every call opens the file anew, so none is left open and one that was removed meanwhile is missed at once.

    Args:
        lock_timeout: seconds to wait while another process writes.
        mode: of a new file; by default its owner alone may read it.
    """

    def __init__(self, path: Path, prepare: Prepare, faults: Faults, lock_timeout: float, mode: int = 0o600) -> None:
        self._path = path
        self._prepare = prepare
        self._faults = faults
        self._lock_timeout = lock_timeout
        self._mode = mode

    def run(self, work: Callable[[Statements], T], *, otherwise: T | None = None, reading: bool = False) -> T:
        try:
            if otherwise is not None and not self._path.exists():
                return otherwise
            with self._transaction("BEGIN" if reading else "BEGIN IMMEDIATE") as db:
                return work(db) if self._prepare(db, otherwise is None) else cast(T, otherwise)
        except OSError as error:
            raise fault(self._faults, "unusable", place=self._path, detail=error.strerror) from error
        except sqlite3.Error as error:
            raise fault(self._faults, failure(error), place=self._path, detail=error) from error
        except UnicodeError as error:
            raise fault(self._faults, "text", place=self._path) from error

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Statements]:
        make_file(self._path, self._mode)
        with contextlib.closing(sqlite3.connect(self._path, timeout=self._lock_timeout, isolation_level=None)) as db:
            # What is removed is overwritten, and not only left out of the table.
            db.execute("PRAGMA secure_delete = ON")
            db.execute(begin)
            # Without a commit, closing rolls back.
            yield _SqliteStatements(db)
            db.execute("COMMIT")


class _SqliteStatements:
    identity = "INTEGER PRIMARY KEY AUTOINCREMENT"
    code_points = ""
    time = "TEXT"
    time_text = "{}"
    items = "json_each(?)"
    item = "json_extract(value, '$[{}]')"
    skipping = ""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._db.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        return self._db.execute(sql, values)

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        return self._db.execute(sql, values).rowcount

    def tables(self, *names: str) -> int:
        marks = ", ".join("?" * len(names))
        return len(self.rows(f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND name IN ({marks})", names))  # noqa: S608

    def lock(self, name: str) -> None:
        """Do nothing: a transaction that writes is alone."""

    def version(self, name: str) -> int:  # noqa: ARG002  the file itself has a number
        return int(self.rows("PRAGMA user_version")[0][0])

    def record_migration(self, name: str, number: int) -> None:  # noqa: ARG002
        self.change(f"PRAGMA user_version = {number}")
