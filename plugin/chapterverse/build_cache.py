"""What a build keeps for later ones in SQLite files, which only save time or money: it ignores their errors."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from chapterverse.model import READER
from chapterverse.project import make_folder
from chapterverse.version import __version__

_T = TypeVar("_T")

#: Raise it when a text that is kept is made in another way, be it of a page, of its Markdown or of the widget.
_FORMAT = 1
#: What other code wrote is not read. Pages are read by parsers of Python's.
_MAKER = f"{_FORMAT} {__version__} {READER} {sys.version_info[:2]}"
_SCHEMA = "CREATE TABLE IF NOT EXISTS kept_1 (key TEXT PRIMARY KEY, text TEXT, day INTEGER) WITHOUT ROWID"
#: Days after which a text that no build read is removed.
_MAX_UNUSED_DAYS = 30
#: Texts of one transaction: another build doesn't wait long for it.
_BATCH = 64
#: Seconds to wait for another build's lock: for what saves time, and for what saves money.
_LOCK_SECONDS, _PAID_LOCK_SECONDS = 1.0, 5.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def find_paid(path: Path | None, statement: str, *values: object) -> Iterator[Any]:
    """Yield the rows of a file that a statement finds, up to the first error."""
    if path is not None and path.exists():
        with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(path, timeout=_PAID_LOCK_SECONDS)) as db:
            yield from db.execute(statement, values)


def keep_paid(path: Path | None, schema: str, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Run a statement for each of the rows, or for none of them, on a file that has the tables of the schema.

    Threads and runs may share a file, because each call opens it. Without a path nothing is kept.
    """
    if path is not None:
        with suppress(sqlite3.Error, OSError, ValueError):
            make_folder(path.parent)
            with closing(sqlite3.connect(path, timeout=_PAID_LOCK_SECONDS)) as db, db:
                db.execute(schema)
                db.executemany(statement, rows)


class BuildCache:
    """Texts that builds made of their input, each by a digest of all that it depends on, for all sites of a folder.

    Args:
        path: of the file; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._new: list[tuple[object, ...]] = []
        self._today = datetime.now(UTC).date().toordinal()
        self._read_again: list[tuple[object, ...]] = []

    @classmethod
    def open(cls, folder: Path, *, make: bool) -> BuildCache:
        """Return the cache in the folder of what this machine keeps (`Settings.local_folder`).

        Args:
            make: whether the folder is made if it isn't there; without it nothing is kept.
        """
        return cls(folder / "builds.sqlite" if make or folder.is_dir() else None)

    def __del__(self) -> None:
        # A build that fails has no other end.
        with suppress(sqlite3.Error):
            self.finish()

    def read(self, key: str, parse: Callable[[str], _T]) -> _T | None:
        """Return what `parse` makes of the text that was written with a key; None if there is none that it can read."""
        rows = self._run("SELECT text, day FROM kept_1 WHERE key = ?", [(f"{_MAKER} {key}",)])
        try:
            parsed = parse(rows[0][0]) if rows else None
        except (ValueError, TypeError, LookupError):
            return None
        if rows and rows[0][1] != self._today:
            self._read_again.append((self._today, f"{_MAKER} {key}"))
        return parsed

    def write(self, key: str, text: str) -> None:
        self._new.append((f"{_MAKER} {key}", text, self._today))
        if len(self._new) >= _BATCH:
            self._write_new()

    def finish(self) -> None:
        """Write what is left, and remove what no build has read for long."""
        self._write_new()
        if self._read_again:
            self._run("UPDATE kept_1 SET day = ? WHERE key = ?", self._read_again)
            self._run("DELETE FROM kept_1 WHERE day < ?", [(self._today - _MAX_UNUSED_DAYS,)])
        if self._db is not None:
            self._db.close()
        self._db, self._read_again = None, []

    def _write_new(self) -> None:
        self._run("INSERT OR REPLACE INTO kept_1 VALUES (?, ?, ?)", self._new)
        self._new = []

    def _run(self, statement: str, rows: list[tuple[object, ...]]) -> list[tuple[str, int]]:
        """Run a statement for each row in one transaction, and return what the last one finds."""
        found: list[tuple[str, int]] = []
        if self._path is None or not rows:
            return found
        try:
            self._db = self._db or _connect(self._path)
            with self._db as db:
                for row in rows:
                    found = db.execute(statement, row).fetchall()
        except (sqlite3.Error, OSError, UnicodeError) as error:
            if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
                with suppress(OSError):
                    self._path.unlink()
            # A lock is another build's, which may hold it for long.
            self._path = None
        return found


def _connect(path: Path) -> sqlite3.Connection:
    make_folder(path.parent)
    db = sqlite3.connect(path, timeout=_LOCK_SECONDS)
    db.execute(_SCHEMA)
    return db
