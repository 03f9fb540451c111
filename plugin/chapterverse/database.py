"""SQL on SQLite and Postgres. The ledger and the kept conversations have one set of statements for both.

A database runs statements in one transaction, and has an error for each failure. SQLite's is here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from chapterverse.errors import ChapterVerseError
from chapterverse.project import make_folder

# Imported where it is used: who is on Postgres needs none of it.
if TYPE_CHECKING:
    import sqlite3

_T = TypeVar("_T")

Row: TypeAlias = tuple[Any, ...]

#: A template of the error for each failure, by the names below. Its message may have {place}, the file; {detail}, the
#: message of SQLite or of the Postgres server; and {state}, the SQLSTATE.
#:
#:     missing, address                      the package is not installed; the address can't be read
#:     unreachable                           no server answers; also the template of the next ones without their own:
#:     user, tls, database, host, option     the server, or libpq, rejects this part of the address
#:     lost                                  the connection broke off; also the template of the next ones:
#:     commit, busy, slow, text              at the commit; others write; too slow; a text can't be stored
#:     unusable, damaged                     the database rejects the statement; it is not ours, or broken
Faults: TypeAlias = Mapping[str, ChapterVerseError]

_BROADER = {
    **dict.fromkeys(("user", "tls", "database", "host", "option"), "unreachable"),
    **dict.fromkeys(("commit", "busy", "slow", "text"), "lost"),
    "damaged": "unusable",
}


def make_fault(faults: Faults, name: str, **values: object) -> ChapterVerseError:
    """Return the error of a failure."""
    template = faults.get(name) or faults[_BROADER[name]]
    # A new error, because an exception keeps the traceback of its last raise.
    return type(template)(str(template).format(**values))


class Statements(Protocol):
    """The statements of a transaction. A `?` stands for a value.

    Attributes:
        identity: the type of a number that grows and is never used again.
        code_points: the clause by which a text is sorted by its code points, as in Python.
        time: the type of a time to the second.
        time_text: an expression for such a time as ISO 8601 UTC, with {} for the column.
        items: a table of the elements of a JSON array, which is a value.
        item: an expression for one field of such an element, itself an array, with {} for the field's index.
        skipping: the clause by which a SELECT skips rows that another transaction is about to remove.
    """

    identity: str
    code_points: str
    time: str
    time_text: str
    items: str
    item: str
    skipping: str

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]: ...

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Yield the rows of a large result, which is never in memory as a whole. The caller reads to its end."""
        ...

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement and return the number of rows that it changed."""
        ...

    def tables(self, *names: str) -> int:
        """Return the number of these tables that exist."""
        ...

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds the lock of this name, and hold it to the end."""
        ...

    def version(self, name: str) -> int:
        """Return the number of the newest migration in the table `name`, 0 before the first."""
        ...

    def record_migration(self, name: str, number: int) -> None:
        """Record in the table `name` that a migration was applied."""
        ...


#: Returns whether the tables exist; makes them if its second argument is true.
Prepare: TypeAlias = Callable[[Statements, bool], bool]


class Database(Protocol):
    """A database whose tables are made at the first write."""

    def run(self, work: Callable[[Statements], _T], *, otherwise: _T | None = None, reading: bool = False) -> _T:
        """Run statements in one transaction. They may be run again from the start.

        Args:
            otherwise: the result if there are no tables yet; None makes them.
            reading: whether they change nothing, so that they need not wait for a writer.

        Raises:
            ChapterVerseError: one of the `Faults`. Nothing was changed.
        """
        ...


def failure_name(error: sqlite3.Error) -> str:
    """Return the name of a failure in `Faults`: "busy", "unusable" or "damaged"."""
    import sqlite3

    # The low byte is the kind of error, and the rest its details. An error of Python itself has no code.
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "busy"
    unusable = sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR
    return "unusable" if kind in unusable else "damaged"


def make_file(path: Path, mode: int = 0o600) -> None:
    """Make an empty file and its folder, unless it exists."""
    if not path.exists():
        make_folder(path.parent)
        path.touch(mode)


class SqliteDatabase:
    """A file that is made with its folder at the first write, so reading leaves no trace.

    Every call opens the file, so none stays open, and a file that was removed is noticed at once.

    Args:
        lock_timeout: seconds to wait while another process writes.
        mode: the mode of a new file; by default only its owner may read it.
    """

    def __init__(self, path: Path, prepare: Prepare, faults: Faults, lock_timeout: float, mode: int = 0o600) -> None:
        self._path = path
        self._prepare = prepare
        self._faults = faults
        self._lock_timeout = lock_timeout
        self._mode = mode

    def run(self, work: Callable[[Statements], _T], *, otherwise: _T | None = None, reading: bool = False) -> _T:
        import sqlite3

        try:
            if otherwise is not None and not self._path.exists():
                return otherwise
            with self._transaction("BEGIN" if reading else "BEGIN IMMEDIATE") as db:
                return work(db) if self._prepare(db, otherwise is None) else cast(_T, otherwise)
        except OSError as error:
            raise make_fault(self._faults, "unusable", place=self._path, detail=error.strerror) from error
        except sqlite3.Error as error:
            raise make_fault(self._faults, failure_name(error), place=self._path, detail=error) from error
        except UnicodeError as error:
            raise make_fault(self._faults, "text", place=self._path) from error

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Statements]:
        import sqlite3

        make_file(self._path, self._mode)
        with contextlib.closing(sqlite3.connect(self._path, timeout=self._lock_timeout, isolation_level=None)) as db:
            # Overwrite what is deleted.
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
        """Do nothing, because only one transaction writes at a time."""

    def version(self, name: str) -> int:  # noqa: ARG002  the file itself has a number
        return int(self.rows("PRAGMA user_version")[0][0])

    def record_migration(self, name: str, number: int) -> None:  # noqa: ARG002
        self.change(f"PRAGMA user_version = {number}")
