"""The table of the conversations, the same in every database. Implements `chapterverse_api.records.Records`, with
`records.feedback` for what readers say of answers.

A row is a turn or the summary of a thread, in the terms of an index's chunk as far as it has them: `type`
"turn" or "summary", `text` what we said, `scope` "entity:" and the thread's id, `source` "chat", `chunk_id` the turn's
id, `timestamp` when it was written and `created_at` from when its age counts. A summary is as old as the oldest turn in
it, so that nothing lives on in summaries; its `chunk_index` is the number of the latest.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chapterverse.database import Database, Faults, Row, Statements
from chapterverse.errors import ConfigurationError
from chapterverse.model import sound
from chapterverse_api.records import feedback
from chapterverse_api.records.types import TURNS, CitedSource, RecordsFault, StoredRating, StoredThread, StoredTurn

#: Rows of any thread that a write removes at most, when they are too old.
SWEPT = 100
#: Turns that are kept of one thread at most.
LONGEST = 200

_TABLE = """
    CREATE TABLE IF NOT EXISTS conversations (
        id {identity},
        scope VARCHAR(80) NOT NULL,
        type VARCHAR(8) NOT NULL CHECK (type IN ('turn', 'summary')),
        chunk_id VARCHAR(64) NOT NULL,
        chunk_index BIGINT NOT NULL CHECK (chunk_index >= 0),
        source VARCHAR(8) NOT NULL,
        question TEXT NOT NULL,
        text TEXT NOT NULL CHECK (length(text) > 0),
        status VARCHAR(16) NOT NULL,
        cited TEXT NOT NULL,
        created_at CHAR(27) NOT NULL,
        timestamp CHAR(27) NOT NULL,
        UNIQUE (scope, type, chunk_id)
    )
"""
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS conversations_age ON conversations (created_at)",
    "CREATE INDEX IF NOT EXISTS conversations_thread ON conversations (scope, type, id)",
)

_COLUMNS = "id, type, chunk_id, chunk_index, question, text, status, cited"
_READ = f"""
    SELECT * FROM (
        SELECT {_COLUMNS} FROM conversations WHERE scope = ? AND type = 'turn' AND created_at >= ?
        ORDER BY id DESC LIMIT {TURNS}
    ) AS turns
    UNION ALL
    SELECT {_COLUMNS} FROM conversations WHERE scope = ? AND type = 'summary' AND created_at >= ?
"""  # noqa: S608  (constants)
_APPEND = """
    INSERT INTO conversations
        (scope, type, chunk_id, chunk_index, source, question, text, status, cited, created_at, timestamp)
    VALUES (?, 'turn', ?, 0, 'chat', ?, ?, ?, ?, ?, ?) ON CONFLICT (scope, type, chunk_id) DO NOTHING
"""
_SHORTEN = """
    DELETE FROM conversations WHERE scope = ? AND type = 'turn' AND id <= (
        SELECT id FROM conversations WHERE scope = ? AND type = 'turn' ORDER BY id DESC LIMIT 1 OFFSET ?
    )
"""
_SWEEP = """
    DELETE FROM conversations WHERE id IN (
        SELECT id FROM conversations WHERE created_at < ? ORDER BY created_at LIMIT ? {skipping}
    )
"""
_FIRST_SUMMARY = """
    INSERT INTO conversations
        (scope, type, chunk_id, chunk_index, source, question, text, status, cited, created_at, timestamp)
    SELECT ?, 'summary', '', ?, 'chat', '', ?, '', '[]', min(created_at), ? FROM conversations
    WHERE scope = ? AND type = 'turn' AND id <= ? AND created_at >= ? GROUP BY scope
    ON CONFLICT (scope, type, chunk_id) DO NOTHING
"""
_NEXT_SUMMARY = """
    UPDATE conversations SET text = ?, chunk_index = ?, timestamp = ?
    WHERE scope = ? AND type = 'summary' AND chunk_index = ?
"""
_FORGET = "DELETE FROM conversations WHERE scope = ?"
#: Too many to be a limit, and within what every database counts.
_ALL = 2**31


_OF_SQLITE: Faults = {
    "busy": RecordsFault("Another process is writing to the conversations in {place}: wait for it."),
    "unusable": RecordsFault("The conversations in {place} can't be used ({detail})."),
    "damaged": RecordsFault("The file {place} is no database of conversations: remove it, or name another."),
    "text": RecordsFault("The conversations in {place} can't be used (a text can't be stored)."),
}
_OF_POSTGRES: Faults = {
    "missing": ConfigurationError('Conversations on Postgres need psycopg: pip install "chapterverse[postgres]".'),
    "address": ConfigurationError(
        "CHAPTERVERSE_RECORDS is no address of a Postgres database: write postgresql://USER:PASSWORD@HOST/NAME, the "
        "password percent-encoded."
    ),
    "unreachable": RecordsFault(
        "The database of the conversations can't be reached: see that its server runs, and correct "
        "CHAPTERVERSE_RECORDS."
    ),
    "lost": RecordsFault("The connection to the database of the conversations broke off, or took too long."),
    # Nothing of what the server says: it may hold a password.
    "unusable": RecordsFault(
        "The database of the conversations refuses (SQLSTATE {state}): see that its user may write and that the table "
        "named conversations is ours."
    ),
}


class Table:
    """Args:
    days: after which a row is too old.
    clock: says what time it is, in UTC.
    """

    def __init__(
        self, database: Database, days: int, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._days = days
        self._clock = clock

    def append(self, thread_id: str, turn: StoredTurn) -> None:
        scope, now, oldest = _scope(thread_id), _written(self._clock()), self._oldest()
        cited = json.dumps([astuple(place) for place in turn.cited])
        row = (scope, turn.turn_id, sound(turn.question), sound(turn.answer), turn.status, cited, now, now)

        def write(db: Statements) -> None:
            db.change(_APPEND, row)
            db.change(_SHORTEN, (scope, scope, LONGEST))
            _sweep(db, oldest, SWEPT)

        self._database.run(write)

    def thread(self, thread_id: str) -> StoredThread:
        values = (_scope(thread_id), self._oldest()) * 2
        rows = self._database.run(lambda db: db.rows(_READ, values), otherwise=list[Row](), reading=True)
        try:
            turns = sorted((_turn(row) for row in rows if row[1] == "turn"), key=lambda turn: turn.number)
        except (TypeError, ValueError) as error:
            raise _foreign() from error
        summary = next(((row[5], row[3]) for row in rows if row[1] == "summary"), ("", 0))
        return StoredThread(tuple(turns), *summary)

    def summarize(self, thread_id: str, summary: str, through: int, *, read: StoredThread) -> bool:
        scope, now, oldest, text = _scope(thread_id), _written(self._clock()), self._oldest(), sound(summary)

        def write(db: Statements) -> int:
            # One that is too old to be read would be in the way of its successor.
            db.change("DELETE FROM conversations WHERE scope = ? AND created_at < ?", (scope, oldest))
            if read.through:
                return db.change(_NEXT_SUMMARY, (text, through, now, scope, read.through))
            return db.change(_FIRST_SUMMARY, (scope, through, text, now, scope, through, oldest))

        return bool(self._database.run(write))

    def rate(self, rated: StoredRating) -> None:
        now, oldest = _written(self._clock()), self._oldest()

        def write(db: Statements) -> None:
            feedback.keep(db, rated, now, oldest)
            _sweep(db, oldest, SWEPT)

        self._database.run(write)

    def rated(self, limit: int) -> list[StoredRating]:
        oldest = self._oldest()
        rows = self._database.run(lambda db: feedback.read(db, oldest, limit), otherwise=list[Row](), reading=True)
        try:
            return [feedback.rated_of(row) for row in rows]
        except (TypeError, ValueError) as error:
            raise _foreign() from error

    def forget(self, thread_id: str) -> bool:
        scope = _scope(thread_id)

        def remove(db: Statements) -> int:
            # What was said of the turns first: it is found by them.
            return feedback.forget(db, scope) + db.change(_FORGET, (scope,))

        return bool(self._database.run(remove, otherwise=0))

    def expire(self, days: int) -> int:
        oldest = self._oldest(days)
        return self._database.run(lambda db: _sweep(db, oldest, _ALL), otherwise=0)

    def _oldest(self, days: int | None = None) -> str:
        """Return the time before which everything is too old."""
        return _written(self._clock() - timedelta(days=self._days if days is None else days))


def sqlite_database(path: Path, patience: float = 2.0) -> Database:
    """Return the database in a file of its own, which its owner alone may read.

    Args:
        patience: seconds to wait while another process writes.
    """
    from chapterverse.database.sqlite import SqliteDatabase

    return SqliteDatabase(path, _prepare, _OF_SQLITE, patience)


def postgres_database(uri: str) -> Database:
    """Return the database at an address, over connections that are used again. A reader waits, so none waits for long.

    Raises:
        ConfigurationError: the address can't be read, or psycopg is missing.
    """
    from chapterverse.database.postgres import PostgresDatabase

    limits = {"statement_timeout": 2.0, "lock_timeout": 2.0}
    return PostgresDatabase(uri, _prepare, _OF_POSTGRES, connect_seconds=3, silence_seconds=5, limits=limits, idle=4)


def _prepare(db: Statements, make: bool) -> bool:
    """Return whether the tables are there, after making what is missing if that is asked for.

    Where an earlier release made one of them, the other is made in any case.
    """
    names = ("conversations", "feedback")
    if not make and not db.tables(*names):
        return False
    if db.tables(*names) < len(names):
        db.lock("chapterverse.conversations")
    # Who comes second must not lock tables that others already write to.
    if db.tables(*names) < len(names):
        for statement in (_TABLE.format(identity=db.identity), feedback.TABLE, *_INDEXES, *feedback.INDEXES):
            db.change(statement)
    return True


def _sweep(db: Statements, oldest: str, most: int) -> int:
    turns = db.change(_SWEEP.format(skipping=db.skipping), (oldest, most))
    return turns + feedback.sweep(db, oldest, most)


def _foreign() -> RecordsFault:
    return RecordsFault("A row of the conversations was not written by this release: remove it.")


def _scope(thread_id: str) -> str:
    return f"entity:{thread_id}"


def _written(time: datetime) -> str:
    """Return ISO 8601 UTC, always of the same length, so that texts sort as times do."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


def _turn(row: Row) -> StoredTurn:
    number, _, turn_id, _, question, text, status, cited = row
    return StoredTurn(
        turn_id, question, text, status, tuple(CitedSource(*place) for place in json.loads(cited)), number
    )
