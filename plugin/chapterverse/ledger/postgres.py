"""The ledger on Postgres, Neon and other poolers included. Implements `chapterverse.ledger.Ledger`."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from chapterverse.errors import IndexMismatch
from chapterverse.ledger.postgres_server import PAUSES, PostgresServer
from chapterverse.ledger.protocols import LedgerRow
from chapterverse.ledger.validation import checked
from chapterverse.model import Scope

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

#: Each entry brings the schema from its own position to the next; `ledger_migrations` has a row for each applied.
_MIGRATIONS = (
    (
        # "C" sorts by code point, as Python does, wherever the database is; so the index serves `records` in order.
        """
        CREATE TABLE document_metadata (
            id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            site TEXT NOT NULL,
            version TEXT NOT NULL,
            file_path VARCHAR(512) COLLATE "C" NOT NULL CHECK (length(file_path) BETWEEN 1 AND 512),
            content_hash CHAR(64) NOT NULL CHECK (length(content_hash) = 64),
            last_indexed_at TIMESTAMPTZ(0) NOT NULL,
            chunk_count INTEGER NOT NULL CHECK (chunk_count >= 0),
            pipeline VARCHAR(64) NOT NULL,
            generation BIGINT NOT NULL,
            UNIQUE (site, version, file_path)
        )
        """,
        "CREATE INDEX document_metadata_file_path ON document_metadata (file_path)",
        "CREATE INDEX document_metadata_last_indexed_at ON document_metadata (last_indexed_at DESC)",
        """
        CREATE TABLE ledger_generation (
            site TEXT NOT NULL,
            version TEXT NOT NULL,
            generation BIGINT NOT NULL,
            token TEXT NOT NULL,
            PRIMARY KEY (site, version)
        )
        """,
    ),
)
_MIGRATING = "SELECT pg_advisory_xact_lock(hashtext('chapterverse.ledger_migrations'))"

_SELECT = """
    SELECT file_path, content_hash, chunk_count, pipeline, generation,
        to_char(last_indexed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM document_metadata WHERE site = %s AND version = %s ORDER BY file_path
"""
_UPSERT = """
    INSERT INTO document_metadata
        (site, version, file_path, content_hash, chunk_count, pipeline, generation, last_indexed_at)
    SELECT %s::text, %s::text, * FROM unnest(
        %s::text[], %s::text[], %s::integer[], %s::text[], %s::bigint[], %s::timestamptz[]
    )
    ON CONFLICT (site, version, file_path) DO UPDATE SET
        content_hash = excluded.content_hash, chunk_count = excluded.chunk_count, pipeline = excluded.pipeline,
        generation = excluded.generation, last_indexed_at = excluded.last_indexed_at
"""
#: Rows of one statement and of one reply: few round trips, and little memory on either side.
_BATCH = 5000


class PostgresLedger:
    """A ledger in the first schema of the connection's search path; tables are made at the first write.

    Every call is one connection and one transaction: none is left idle while pages are embedded, and nothing outlives
    its transaction, as a pooler in transaction mode demands.

    Args:
        server: where it is.
        patience: seconds to wait while another process writes.

    Raises, from every method:
        IndexCorrupt: tables of these names are there, and not ours.
        IndexFault: the server can't be reached, refuses, or broke off; nothing was written.
        IndexLocked: another process writes to it for longer than `patience`.
        IndexMismatch: a newer release wrote it.
    """

    def __init__(self, server: PostgresServer, patience: float = 10.0) -> None:
        self._server = server
        self._patience = patience

    @classmethod
    def open(cls, uri: str, patience: float = 10.0, pauses: Sequence[float] = PAUSES) -> Self:
        """Return the ledger at an address, not connected yet.

        Args:
            pauses: seconds to wait between the tries to connect.

        Raises:
            ConfigurationError: the address can't be read, or psycopg is missing.
        """
        return cls(PostgresServer(uri, pauses), patience)

    def records(self, scope: Scope) -> dict[str, LedgerRow]:
        with self._transaction() as (db, applied):
            if not applied:
                return {}
            # A cursor on the server's side: else the whole reply would be held a second time.
            with db.cursor(name="ledger_records") as cursor:
                cursor.itersize = _BATCH
                return {row[0]: LedgerRow(*row) for row in cursor.execute(_SELECT, (scope.site, scope.version))}

    def generation(self, scope: Scope) -> int:
        return self._written_for(scope)[0]

    def token(self, scope: Scope) -> str:
        return self._written_for(scope)[1]

    def _written_for(self, scope: Scope) -> tuple[int, str]:
        with self._transaction() as (db, applied):
            if not applied:
                return 0, ""
            row = db.execute(
                "SELECT generation, token FROM ledger_generation WHERE site = %s AND version = %s",
                (scope.site, scope.version),
            ).fetchone()
            return (int(row[0]), str(row[1])) if row else (0, "")

    def save(
        self, scope: Scope, generation: int, changed: Iterable[LedgerRow], removed: Iterable[str], token: str = ""
    ) -> None:
        key = (scope.site, scope.version)
        with self._transaction() as (db, applied):
            if applied < len(_MIGRATIONS):
                _migrate(db, applied)
            # First, for it locks the scope: two that save it at once do so one after the other.
            db.execute(
                "INSERT INTO ledger_generation (site, version, generation, token) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (site, version) DO UPDATE SET generation = excluded.generation, token = excluded.token",
                (*key, generation, token),
            )
            db.execute(
                "DELETE FROM document_metadata WHERE site = %s AND version = %s AND file_path = ANY(%s::text[])",
                (*key, list(removed)),
            )
            for columns in _columns(changed):
                db.execute(_UPSERT, (*key, *columns))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[Connection, int]]:
        """Open a transaction; yield it with the number of migrations that its tables have seen."""
        with self._server.transaction() as db:
            # "true" ends the setting with the transaction.
            milliseconds = str(max(1, round(self._patience * 1000)))
            db.execute("SELECT set_config('lock_timeout', %s, true)", (milliseconds,))
            applied = _applied(db)
            if applied > len(_MIGRATIONS):
                raise IndexMismatch("The Postgres ledger was written by a newer release: upgrade chapterverse.")
            yield db, applied


def _applied(db: Connection) -> int:
    if db.execute("SELECT to_regclass('ledger_migrations')").fetchone() == (None,):
        return 0
    return _newest(db)


def _newest(db: Connection) -> int:
    row = db.execute("SELECT coalesce(max(version), 0) FROM ledger_migrations").fetchone()
    return int(row[0]) if row else 0


def _migrate(db: Connection, applied: int) -> None:
    db.execute(_MIGRATING)
    if not applied:
        # Not by `to_regclass`, which may answer from a cache of before the lock.
        db.execute(
            "CREATE TABLE IF NOT EXISTS ledger_migrations"
            " (version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
        )
    # Asked again, now that nobody else can be at it.
    applied = _newest(db)
    for number, statements in enumerate(_MIGRATIONS[applied:], applied + 1):
        for statement in statements:
            db.execute(statement)
        db.execute("INSERT INTO ledger_migrations (version) VALUES (%s)", (number,))


def _columns(records: Iterable[LedgerRow]) -> Iterator[tuple[list[Any], ...]]:
    """Yield rows in batches, column by column; of two with one path in a batch the last, as if written in turn."""
    rows = checked(records)
    while batch := {r.file_path: r for r in itertools.islice(rows, _BATCH)}:
        yield tuple(
            [getattr(record, name) for record in batch.values()]
            for name in ("file_path", "content_hash", "chunk_count", "pipeline", "generation", "last_indexed_at")
        )
