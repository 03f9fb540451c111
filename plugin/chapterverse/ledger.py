"""The content from which each file was indexed, in two tables on SQLite or Postgres.

A ledger only states which files may be skipped. Readers see the generation that the head in the store names. A ledger
that was written for another generation is ignored.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

from chapterverse.database import Database, Faults, SqliteDatabase, Statements
from chapterverse.errors import IndexCorrupt, IndexFault, IndexLocked, IndexMismatch
from chapterverse.extensions import open_offer
from chapterverse.model import Head, Scope, replace_unstorable
from chapterverse.settings import DEFAULT_STORE, Settings

#: The hash of a file whose content is unknown. It equals no other hash, so the file is read again.
UNREAD = "0" * 64
#: The hash of an imported document, which has no file. A run does not change it.
IMPORTED = "f" * 64

#: Each entry brings the schema from its own position to the next.
_MIGRATIONS = (
    (
        """
        CREATE TABLE document_metadata (
            id {identity},
            site TEXT NOT NULL,
            version TEXT NOT NULL,
            file_path VARCHAR(512) {code_points} NOT NULL CHECK (length(file_path) BETWEEN 1 AND 512),
            content_hash CHAR(64) NOT NULL
                CHECK (length(content_hash) = 64 AND ltrim(content_hash, '0123456789abcdef') = ''),
            last_indexed_at {time} NOT NULL,
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
_VERSIONS = "ledger_migrations"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of the table `document_metadata`.

    Attributes:
        pipeline: the fingerprint of everything that decided the file's chunks, except its content.
        last_indexed_at: the time of the run, ISO 8601 UTC.
    """

    file_path: str
    content_hash: str
    chunk_count: int
    pipeline: str
    generation: int
    last_indexed_at: str


_COLUMNS = [field.name for field in fields(LedgerRow)]
#: Types of the columns that are no text.
_TYPES = {"chunk_count": "INTEGER", "generation": "BIGINT", "last_indexed_at": "{time}"}
_INSERT = f"""
    INSERT INTO document_metadata (site, version, {", ".join(_COLUMNS)})
    SELECT ?, ?, {{fields}} FROM {{items}} WHERE true ON CONFLICT (site, version, file_path)
    DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "file_path")}
"""  # noqa: S608  (constants)
_DELETE = """
    DELETE FROM document_metadata WHERE site = ? AND version = ? AND file_path IN (SELECT {item} FROM {items})
"""
#: Rows that are sent at once. There are few round trips, and little memory is needed on either side.
_BATCH_ROWS = 5000

_HASH = re.compile("[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: Checks of the columns' values. The constraints of the databases repeat them for other programs that write.
_RULES: Mapping[str, Callable[[Any], bool]] = {
    "file_path": lambda v: isinstance(v, str) and 1 <= len(v) <= 512 and replace_unstorable(v) == v,
    "content_hash": lambda v: isinstance(v, str) and _HASH.fullmatch(v) is not None,
    "chunk_count": lambda v: isinstance(v, int) and 0 <= v < 2**31,
    "pipeline": lambda v: isinstance(v, str) and len(v) <= 64 and replace_unstorable(v) == v,
    "generation": lambda v: isinstance(v, int) and 0 <= v < 2**63,
    "last_indexed_at": lambda v: isinstance(v, str) and _TIME.fullmatch(v) is not None,
}

_SQLITE_FAULTS: Faults = {
    "busy": IndexLocked("Another process is writing to the ledger {place}: wait for it, then run again."),
    "unusable": IndexFault("The ledger {place} can't be used ({detail})."),
    "damaged": IndexCorrupt("The ledger {place} is damaged ({detail}): remove it to start afresh."),
    "text": IndexFault("The ledger {place} can't store the text of a name or a path."),
}


class Ledger:
    """The files of each scope, and the generation that their rows describe, in a database.

    Each call is one connection and one transaction. None is open while pages are embedded.

    Raises, from every method:
        IndexCorrupt: the database is damaged, or not ours.
        IndexFault: it can't be reached, opened or written; nothing was written.
        IndexLocked: another process writes to it for too long.
        IndexMismatch: a newer release wrote it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def on_sqlite(cls, path: Path, lock_timeout: float = 10.0) -> Self:
        """Return the ledger in a file of its own.

        Args:
            lock_timeout: seconds to wait while another process writes.
        """
        return cls(SqliteDatabase(path, partial(prepare, str(path)), _SQLITE_FAULTS, lock_timeout, mode=0o644))

    @classmethod
    def from_settings(cls, _: Settings, place: str) -> Self:
        return cls.on_sqlite(Path(place))

    def records(self, scope: Scope) -> dict[str, LedgerRow]:
        """Return the rows of a scope by file path."""

        def read(db: Statements) -> dict[str, LedgerRow]:
            columns = ", ".join(_COLUMNS).replace("last_indexed_at", db.time_text.format("last_indexed_at"))
            sql = f"SELECT {columns} FROM document_metadata WHERE site = ? AND version = ? ORDER BY file_path"  # noqa: S608
            return {row[0]: LedgerRow(*row) for row in db.stream(sql, (scope.site, scope.version))}

        return self._database.run(read, otherwise=dict[str, LedgerRow](), reading=True)

    def described(self, scope: Scope) -> tuple[int, str]:
        """Return the generation and the token of the head that the rows describe; 0 and "" if there are none."""
        sql, key = "SELECT generation, token FROM ledger_generation WHERE site = ? AND version = ?", scope
        rows = self._database.run(
            lambda db: db.rows(sql, (key.site, key.version)), otherwise=list[tuple[Any, ...]](), reading=True
        )
        return next(((int(generation), str(token)) for generation, token in rows), (0, ""))

    def save(
        self, scope: Scope, generation: int, writes: Iterable[LedgerRow], removals: Iterable[str], token: str = ""
    ) -> None:
        """Write and delete rows and set the scope's generation and its head's token, all in one transaction."""
        key = (scope.site, scope.version)

        def write(db: Statements) -> None:
            # This comes first, because on Postgres it locks the scope against other runs.
            db.change(
                "INSERT INTO ledger_generation (site, version, generation, token) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (site, version) DO UPDATE SET generation = excluded.generation, token = excluded.token",
                (*key, generation, token),
            )
            db.change(
                _DELETE.format(item=db.item.format(0), items=db.items), (*key, _json([path] for path in removals))
            )
            types = [_TYPES.get(name, "TEXT").format(time=db.time) for name in _COLUMNS]
            casts = [f"CAST({db.item.format(place)} AS {kind})" for place, kind in enumerate(types)]
            insert, rows = _INSERT.format(fields=", ".join(casts), items=db.items), _check(writes)
            # Only the last of several rows with one path is sent, because Postgres rejects them in one statement.
            while batch := {row.file_path: astuple(row) for row in islice(rows, _BATCH_ROWS)}:
                db.change(insert, (*key, _json(batch.values())))

        self._database.run(write)


def open_ledger(settings: Settings) -> Ledger:
    """Return the ledger that `settings.ledger` names. Nothing is opened yet.

    Without a name it is a file: inside an embedded store, or for a remote store a file of its own in the folder of the
    default store. Raises as `open_offer` does.
    """
    if settings.ledger:
        ledger: Ledger = open_offer("ledger", settings)
        return ledger
    store_kind, _, folder = settings.store.partition(":")
    if store_kind == "edge":
        return Ledger.on_sqlite(Path(folder) / "ledger.sqlite")
    name = hashlib.sha256(settings.store.encode(errors="surrogatepass")).hexdigest()[:16]
    return Ledger.on_sqlite(Path(DEFAULT_STORE.partition(":")[2]) / f"ledger-{name}.sqlite")


def rows_of(ledger: Ledger, head: Head) -> dict[str, LedgerRow] | None:
    """Return the rows of a generation; None if the ledger describes another one."""
    wanted = head.generation, head.token
    if ledger.described(head.scope) != wanted:
        return None
    rows = ledger.records(head.scope)
    # Again, because a publication may have replaced the rows meanwhile.
    return rows if ledger.described(head.scope) == wanted else None


def prepare(place: str, db: Statements, make: bool) -> bool:
    """Bring the tables to the state of this release; return whether there are any.

    Args:
        place: the database, for messages.
        make: whether to make missing ones.
    """
    applied = db.version(_VERSIONS)
    if applied > len(_MIGRATIONS):
        raise IndexMismatch(f"{place} was written by a newer release: upgrade chapterverse.")
    if applied == len(_MIGRATIONS) or not make:
        return applied > 0
    db.lock(f"chapterverse.{_VERSIONS}")
    # Read again under the lock, since another process may have written in between.
    for number, statements in enumerate(_MIGRATIONS[db.version(_VERSIONS) :], db.version(_VERSIONS) + 1):
        for statement in statements:
            db.change(statement.format(identity=db.identity, code_points=db.code_points, time=db.time))
        db.record_migration(_VERSIONS, number)
    return True


def _json(values: Iterable[object]) -> str:
    return json.dumps([*values], ensure_ascii=False)


def _check(rows: Iterable[LedgerRow]) -> Iterator[LedgerRow]:
    """Yield the rows. Every ledger rejects the same rows with the same message.

    Raises:
        IndexFault: a row is out of contract.
    """
    for row in rows:
        for name, fits in _RULES.items():
            if not fits(getattr(row, name)):
                raise IndexFault(f"The {name} of {row.file_path!a:.80} is nothing that a ledger holds.")
        yield row
