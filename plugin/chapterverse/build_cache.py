"""What a build made of its input, kept for the next build: texts, each by a digest of all that it depends on."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from chapterverse import __version__
from chapterverse.cache_folder import make_folder
from chapterverse.model import READER, Scope

_SCHEMA = "CREATE TABLE IF NOT EXISTS kept (scope TEXT, key TEXT, text TEXT, PRIMARY KEY (scope, key)) WITHOUT ROWID"
#: What another version of the code wrote is not read, and gone after the next `finish`.
_MAKER = f"{__version__} {READER}"
#: Seconds to wait for another build's lock.
_LOCK_SECONDS = 1.0


class BuildCache:
    """A SQLite file, of which each site and version has a part.

    It only saves time: after an error of SQLite a build goes on without it. What a build wrote is there for the next
    one after `finish`; a build that is killed leaves the file as it was.

    Args:
        path: of the file; None keeps nothing.
    """

    def __init__(self, path: Path | None, scope: str = "") -> None:
        self._path, self._scope = path, scope
        self._used = set[str]()
        self._db: sqlite3.Connection | None = None

    @classmethod
    def open(cls, folder: Path, scope: Scope, *, make: bool) -> BuildCache:
        """Return the cache in the folder of what this machine keeps (`Settings.local_folder`).

        Args:
            make: whether the folder is made if it isn't there; without it nothing is kept.
        """
        return cls(folder / "builds.sqlite" if make or folder.is_dir() else None, str(scope))

    def read(self, key: str) -> str | None:
        """Return the text that was written with a key, None if there is none."""
        key = f"{_MAKER} {key}"
        rows = self._run("SELECT text FROM kept WHERE scope = ? AND key = ?", [(key,)])
        if not (rows and isinstance(rows[0][0], str)):
            return None
        self._used.add(key)
        return rows[0][0]

    def write(self, key: str, text: str) -> None:
        key = f"{_MAKER} {key}"
        self._used.add(key)
        self._run("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", [(key, text)])

    def finish(self) -> None:
        """Keep what this build read or wrote, and nothing else of its site and version."""
        if self._db is None:
            return
        kept = {key for (key,) in self._run("SELECT key FROM kept WHERE scope = ?", [()])}
        self._run("DELETE FROM kept WHERE scope = ? AND key = ?", [(key,) for key in kept - self._used])
        with contextlib.suppress(sqlite3.Error):
            self._db.commit()
        self.close()

    def __del__(self) -> None:
        # A build that fails has no other end.
        self.close()

    def close(self) -> None:
        """Leave the file as it was before this build, unless it has finished."""
        if self._db is not None:
            self._db.close()
        self._used, self._db = set(), None

    def _run(self, statement: str, rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Run a statement for each row, with the scope before it, and return what the last one finds."""
        found: list[tuple[str, ...]] = []
        if self._path is None:
            return found
        try:
            for row in rows:
                self._db = self._db or _connect(self._path)
                found = self._db.execute(statement, (self._scope, *row)).fetchall()
        except (sqlite3.Error, OSError, UnicodeError) as error:
            # One that is damaged is made anew by the next build; a lock is another build's.
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                with contextlib.suppress(OSError):
                    self._path.unlink()
            self._path = None
        return found


def _connect(path: Path) -> sqlite3.Connection:
    make_folder(path.parent)
    db = sqlite3.connect(path, timeout=_LOCK_SECONDS)
    db.execute(_SCHEMA)
    return db
