"""The ledger in one SQLite file. Implements `chapterverse.ledger.Ledger`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from chapterverse.errors import IndexCorrupt, IndexFault, IndexLocked, IndexMismatch
from chapterverse.ledger.protocols import LedgerRow
from chapterverse.ledger.validation import checked
from chapterverse.model import Scope

#: Each entry brings the schema from its own position to the next; `user_version` counts those applied.
_MIGRATIONS = (
    (
        """
        CREATE TABLE document_metadata (
            id INTEGER PRIMARY KEY,
            site TEXT NOT NULL,
            version TEXT NOT NULL,
            file_path VARCHAR(512) NOT NULL CHECK (length(file_path) BETWEEN 1 AND 512),
            content_hash CHAR(64) NOT NULL CHECK (length(content_hash) = 64),
            last_indexed_at TEXT NOT NULL,
            chunk_count INTEGER NOT NULL CHECK (chunk_count >= 0),
            pipeline VARCHAR(64) NOT NULL,
            generation INTEGER NOT NULL,
            UNIQUE (site, version, file_path)
        )
        """,
        "CREATE INDEX document_metadata_file_path ON document_metadata (file_path)",
        "CREATE INDEX document_metadata_last_indexed_at ON document_metadata (last_indexed_at DESC)",
        """
        CREATE TABLE ledger_generation (
            site TEXT NOT NULL,
            version TEXT NOT NULL,
            generation INTEGER NOT NULL,
            token TEXT NOT NULL,
            PRIMARY KEY (site, version)
        )
        """,
    ),
)

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class SqliteLedger:
    """A ledger in a file of its own, made with its folder at the first write: whoever only reads leaves no trace.

    Every call opens the file anew, so none is left open and one that was removed meanwhile is missed at once.

    Args:
        patience: seconds to wait while another process writes.

    Raises, from every method:
        IndexCorrupt: the file is no SQLite database, or not ours.
        IndexFault: it can't be opened or written.
        IndexLocked: another process writes to it for longer than `patience`.
        IndexMismatch: a newer release wrote it.
    """

    def __init__(self, path: Path, patience: float = 10.0) -> None:
        self._path = path
        self._patience = patience

    def records(self, scope: Scope) -> dict[str, LedgerRow]:
        if not self._path.exists():
            return {}
        with self._connection() as db:
            rows = db.execute(
                "SELECT file_path, content_hash, chunk_count, pipeline, generation, last_indexed_at"
                " FROM document_metadata WHERE site = ? AND version = ? ORDER BY file_path",
                (scope.site, scope.version),
            )
            return {row[0]: LedgerRow(*row) for row in rows}

    def generation(self, scope: Scope) -> int:
        return self._written_for(scope)[0]

    def token(self, scope: Scope) -> str:
        return self._written_for(scope)[1]

    def _written_for(self, scope: Scope) -> tuple[int, str]:
        if not self._path.exists():
            return 0, ""
        with self._connection() as db:
            row = db.execute(
                "SELECT generation, token FROM ledger_generation WHERE site = ? AND version = ?",
                (scope.site, scope.version),
            ).fetchone()
            return (int(row[0]), str(row[1])) if row else (0, "")

    def save(
        self, scope: Scope, generation: int, changed: Iterable[LedgerRow], removed: Iterable[str], token: str = ""
    ) -> None:
        key = (scope.site, scope.version)
        with self._connection() as db, _transaction(db):
            db.executemany(
                "DELETE FROM document_metadata WHERE site = ? AND version = ? AND file_path = ?",
                [(*key, path) for path in removed],
            )
            db.executemany(
                "INSERT INTO document_metadata"
                " (site, version, file_path, content_hash, chunk_count, pipeline, generation, last_indexed_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, version, file_path) DO UPDATE SET"
                " content_hash = excluded.content_hash, chunk_count = excluded.chunk_count,"
                " pipeline = excluded.pipeline, generation = excluded.generation,"
                " last_indexed_at = excluded.last_indexed_at",
                [
                    (*key, r.file_path, r.content_hash, r.chunk_count, r.pipeline, r.generation, r.last_indexed_at)
                    for r in checked(changed)
                ],
            )
            db.execute(
                "INSERT INTO ledger_generation VALUES (?, ?, ?, ?) ON CONFLICT (site, version)"
                " DO UPDATE SET generation = excluded.generation, token = excluded.token",
                (*key, generation, token),
            )

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None)
            with contextlib.closing(connection) as db:
                self._migrate(db)
                yield db
        except OSError as error:
            raise IndexFault(f"The ledger {self._path} can't be used ({error.strerror}).") from error
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except UnicodeError as error:
            raise IndexFault(f"The ledger {self._path} can't store the text of a name or a path.") from error

    def _migrate(self, db: sqlite3.Connection) -> None:
        if _applied(db) > len(_MIGRATIONS):
            raise IndexMismatch(f"{self._path} was written by a newer release: upgrade chapterverse.")
        if _applied(db) == len(_MIGRATIONS):
            return
        with _transaction(db):
            # Asked again, now that nobody else can be at it.
            for number, statements in enumerate(_MIGRATIONS[_applied(db) :], _applied(db) + 1):
                for statement in statements:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")

    def _explained(self, error: sqlite3.Error) -> IndexFault:
        # The low byte is the kind of error, the rest its details; there is none where Python refused by itself.
        kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if kind in _BUSY:
            return IndexLocked(f"Another process is writing to the ledger {self._path}: wait for it, then run again.")
        if kind in _UNWRITABLE:
            return IndexFault(f"The ledger {self._path} can't be used ({error}).")
        return IndexCorrupt(f"The ledger {self._path} is damaged ({error}): remove it to start afresh.")


def _applied(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # An error such as a full disk may have ended the transaction already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
