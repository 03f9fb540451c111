"""The embedded ledger: one SQLite file. Implements `chapterverse.ledger.Ledger`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from chapterverse.errors import IndexCorrupt, IndexMismatch
from chapterverse.ledger import Record
from chapterverse.model import Scope

#: Each entry brings the schema from its own position to the next; `user_version` counts those applied.
_MIGRATIONS = (
    """
    CREATE TABLE document_metadata (
        id INTEGER PRIMARY KEY,
        site VARCHAR(255) NOT NULL,
        version VARCHAR(64) NOT NULL,
        file_path VARCHAR(512) NOT NULL,
        content_hash CHAR(64) NOT NULL,
        last_indexed_at TEXT NOT NULL,
        chunk_count INTEGER NOT NULL CHECK (chunk_count >= 0),
        pipeline VARCHAR(64) NOT NULL,
        generation INTEGER NOT NULL,
        UNIQUE (site, version, file_path)
    );
    CREATE INDEX document_metadata_file_path ON document_metadata (file_path);
    CREATE INDEX document_metadata_last_indexed_at ON document_metadata (last_indexed_at DESC);
    CREATE TABLE ledger_generation (
        site VARCHAR(255) NOT NULL,
        version VARCHAR(64) NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (site, version)
    );
    """,
)


class SqliteLedger:
    """A ledger in a file of its own, made with its folder at the first write: whoever only reads leaves no trace.

    Raises, from every method:
        IndexCorrupt: the file is no SQLite database, or can't be written.
        IndexMismatch: a newer release wrote it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: sqlite3.Connection | None = None

    def records(self, scope: Scope) -> dict[str, Record]:
        if not self._exists:
            return {}
        with self._explained():
            rows = self._db.execute(
                "SELECT file_path, content_hash, chunk_count, pipeline, generation, last_indexed_at"
                " FROM document_metadata WHERE site = ? AND version = ? ORDER BY file_path",
                (scope.site, scope.version),
            )
            return {row[0]: Record(*row) for row in rows}

    def generation(self, scope: Scope) -> int:
        if not self._exists:
            return 0
        with self._explained():
            row = self._db.execute(
                "SELECT generation FROM ledger_generation WHERE site = ? AND version = ?", (scope.site, scope.version)
            ).fetchone()
            return int(row[0]) if row else 0

    def save(self, scope: Scope, generation: int, changed: Iterable[Record], removed: Iterable[str]) -> None:
        key = (scope.site, scope.version)
        with self._transaction():
            self._db.executemany(
                "DELETE FROM document_metadata WHERE site = ? AND version = ? AND file_path = ?",
                [(*key, path) for path in removed],
            )
            self._db.executemany(
                "INSERT INTO document_metadata"
                " (site, version, file_path, content_hash, chunk_count, pipeline, generation, last_indexed_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, version, file_path) DO UPDATE SET"
                " content_hash = excluded.content_hash, chunk_count = excluded.chunk_count,"
                " pipeline = excluded.pipeline, generation = excluded.generation,"
                " last_indexed_at = excluded.last_indexed_at",
                [
                    (*key, r.file_path, r.content_hash, r.chunk_count, r.pipeline, r.generation, r.last_indexed_at)
                    for r in changed
                ],
            )
            self._db.execute(
                "INSERT INTO ledger_generation VALUES (?, ?, ?)"
                " ON CONFLICT (site, version) DO UPDATE SET generation = excluded.generation",
                (*key, generation),
            )

    def reset(self, scope: Scope) -> None:
        with self._transaction():
            key = (scope.site, scope.version)
            self._db.execute("DELETE FROM document_metadata WHERE site = ? AND version = ?", key)
            self._db.execute("DELETE FROM ledger_generation WHERE site = ? AND version = ?", key)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _exists(self) -> bool:
        return self._opened is not None or self._path.exists()

    @property
    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self._path, timeout=10, isolation_level=None, check_same_thread=False)
            try:
                self._migrate(db)
            except BaseException:
                db.close()
                raise
            self._opened = db
        return self._opened

    def _migrate(self, db: sqlite3.Connection) -> None:
        applied = int(db.execute("PRAGMA user_version").fetchone()[0])
        if applied > len(_MIGRATIONS):
            raise IndexMismatch(f"{self._path} was written by a newer release: upgrade chapterverse.")
        for number, script in enumerate(_MIGRATIONS[applied:], applied + 1):
            db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise IndexCorrupt(
                f"The ledger {self._path} can't be used ({error}): remove it to start afresh."
            ) from error
