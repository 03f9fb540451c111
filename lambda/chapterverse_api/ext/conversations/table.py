"""The tables of conversations and ratings, the same in every database. Implements `Records`.

A row of `conversations` is a turn or the summary of a thread. Its columns have the names of a chunk's fields:

    type          "turn" or "summary"
    scope         "entity:" and the thread's id
    source        "chat"
    chunk_id      the turn's id
    chunk_index   the turn's number; of a summary, the number of the latest turn in it
    text          the answer or the summary
    created_at    the time from which its age counts; of a summary, that of the oldest turn in it
    timestamp     the time at which it was written

A row of `faq_matches` holds the time at which a FAQ entry answered last, and nothing of the question.

A row of `feedback` is the rating of a turn. A second rating replaces the first. Its `scope` is that of the thread if
the turn was stored before. Its age counts from that of its turn, so no comment is kept longer than its turn.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from chapterverse.database import Database, Faults, Row, SqliteDatabase, Statements
from chapterverse.model import replace_unstorable
from chapterverse.settings import Settings
from chapterverse_api.answer.event import RecordsFault, parse_days
from chapterverse_api.ext.conversations.records import (
    DEFAULT_TURNS,
    FAQ_DAYS,
    MAX_STORED_TURNS,
    CitedSource,
    StoredRating,
    StoredThread,
    StoredTurn,
    time_text,
)

#: Expired rows, of any thread, that a write removes at most.
MAX_REMOVED_ROWS = 100

_CREATE_TURNS_SQL = """
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
        summary_index BIGINT NOT NULL DEFAULT 0,
        UNIQUE (scope, type, chunk_id)
    )
"""
_COLUMNS = "id, type, chunk_id, chunk_index, question, text, status, cited, summary_index"
_READ_SQL = f"""
    SELECT * FROM (
        SELECT {_COLUMNS} FROM conversations WHERE scope = ? AND type = 'turn' AND created_at >= ?
        ORDER BY id DESC LIMIT ?
    ) AS turns
    UNION ALL
    SELECT {_COLUMNS} FROM conversations WHERE scope = ? AND type = 'summary' AND created_at >= ?
"""  # noqa: S608  (constants)
_ALL_TURNS_SQL = """
    SELECT coalesce(f.rating, ''), c.scope, c.created_at, c.id, c.type, c.chunk_id, c.chunk_index, c.question, '',
        c.status, c.cited, 0
    FROM conversations AS c LEFT JOIN feedback AS f ON f.turn_id = c.chunk_id
    WHERE c.type = 'turn' AND c.created_at >= ? ORDER BY c.id
"""
_APPEND_SQL = """
    INSERT INTO conversations
        (scope, type, chunk_id, chunk_index, source, question, text, status, cited, created_at, timestamp)
    SELECT ?, 'turn', ?, coalesce(max(chunk_index), 0) + 1, 'chat', ?, ?, ?, ?, ?, ? FROM conversations
    WHERE scope = ? AND type = 'turn'
    ON CONFLICT (scope, type, chunk_id) DO NOTHING
"""
_SHORTEN_SQL = """
    DELETE FROM conversations WHERE scope = ? AND type = 'turn' AND id <= (
        SELECT id FROM conversations WHERE scope = ? AND type = 'turn' ORDER BY id DESC LIMIT 1 OFFSET ?
    )
"""
_SWEEP_SQL = """
    DELETE FROM conversations WHERE id IN (
        SELECT id FROM conversations WHERE created_at < ? ORDER BY created_at LIMIT ? {skipping}
    )
"""
_FIRST_SUMMARY_SQL = """
    INSERT INTO conversations
        (scope, type, chunk_id, chunk_index, source, question, text, status, cited, created_at, timestamp)
    SELECT ?, 'summary', '', ?, 'chat', '', ?, '', '[]', min(created_at), ? FROM conversations
    WHERE scope = ? AND type = 'turn' AND chunk_index <= ? AND created_at >= ? GROUP BY scope
    ON CONFLICT (scope, type, chunk_id) DO NOTHING
"""
_NEXT_SUMMARY_SQL = """
    UPDATE conversations SET text = ?, chunk_index = ?, timestamp = ?, summary_index = summary_index + 1
    WHERE scope = ? AND type = 'summary' AND chunk_index = ?
"""
_FORGET_SQL = "DELETE FROM conversations WHERE scope = ?"
_CREATE_RATINGS_SQL = """
    CREATE TABLE IF NOT EXISTS feedback (
        turn_id VARCHAR(64) PRIMARY KEY,
        scope VARCHAR(80) NOT NULL,
        rating VARCHAR(8) NOT NULL CHECK (rating IN ('up', 'down')),
        reason VARCHAR(16) NOT NULL,
        comment TEXT NOT NULL,
        created_at CHAR(27) NOT NULL,
        timestamp CHAR(27) NOT NULL
    )
"""
_INDEXES_SQL = (
    "CREATE INDEX IF NOT EXISTS conversations_age ON conversations (created_at)",
    "CREATE INDEX IF NOT EXISTS conversations_thread ON conversations (scope, type, id)",
    "CREATE INDEX IF NOT EXISTS feedback_age ON feedback (created_at)",
    "CREATE INDEX IF NOT EXISTS feedback_thread ON feedback (scope)",
    "CREATE INDEX IF NOT EXISTS feedback_time ON feedback (timestamp)",
    "CREATE INDEX IF NOT EXISTS conversations_turn ON conversations (chunk_id)",
)

_RATED_TURN_SQL = "SELECT scope, created_at FROM conversations WHERE chunk_id = ? AND type = 'turn' AND created_at >= ?"
_RATE_SQL = """
    INSERT INTO feedback (turn_id, scope, rating, reason, comment, created_at, timestamp) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (turn_id) DO UPDATE SET
        scope = excluded.scope, rating = excluded.rating, reason = excluded.reason, comment = excluded.comment,
        created_at = excluded.created_at, timestamp = excluded.timestamp
"""
_READ_RATINGS_SQL = """
    SELECT f.turn_id, f.rating, f.reason, f.comment, f.timestamp, c.question, c.text, c.status, c.cited,
        c.chunk_index
    FROM feedback AS f LEFT JOIN conversations AS c
        ON c.chunk_id = f.turn_id AND c.type = 'turn' AND c.created_at >= ?
    WHERE f.created_at >= ? ORDER BY f.timestamp DESC, f.turn_id LIMIT ?
"""
# A rating that came before its turn was stored has no thread.
_FORGET_RATINGS_SQL = """
    DELETE FROM feedback WHERE scope = ? OR turn_id IN (SELECT chunk_id FROM conversations WHERE scope = ?)
"""
_SWEEP_RATINGS_SQL = """
    DELETE FROM feedback WHERE turn_id IN (
        SELECT turn_id FROM feedback WHERE created_at < ? ORDER BY created_at LIMIT ? {skipping}
    )
"""

_CREATE_MATCHES_SQL = """
    CREATE TABLE IF NOT EXISTS faq_matches (entry_id VARCHAR(64) PRIMARY KEY, timestamp CHAR(27) NOT NULL)
"""
_MATCH_SQL = """
    INSERT INTO faq_matches (entry_id, timestamp) VALUES (?, ?)
    ON CONFLICT (entry_id) DO UPDATE SET timestamp = excluded.timestamp
"""
_READ_MATCHES_SQL = "SELECT entry_id FROM faq_matches WHERE timestamp >= ?"
_SWEEP_MATCHES_SQL = "DELETE FROM faq_matches WHERE timestamp < ?"

#: A limit that no table reaches, and that every database can count to.
_NO_LIMIT = 2**31

_SQLITE_FAULTS: Faults = {
    "busy": RecordsFault("Another process is writing to the conversations in {place}: wait for it."),
    "unusable": RecordsFault("The conversations in {place} can't be used ({detail})."),
    "damaged": RecordsFault("The file {place} is no database of conversations: remove it, or name another."),
    "text": RecordsFault("The conversations in {place} can't be used (a text can't be stored)."),
}


class RecordsTable:
    """Implements `Records`.

    Args:
        days: days after which a row expires.
        clock: returns the time in UTC.
    """

    def __init__(
        self, database: Database, days: int, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._days = days
        self._clock = clock

    @classmethod
    def from_settings(cls, settings: Settings, place: str) -> Self:
        return cls(sqlite_database(Path(place)), parse_days(settings))

    def append(self, thread_id: str, turn: StoredTurn) -> None:
        scope, now, oldest = _scope(thread_id), time_text(self._clock()), self._oldest()
        cited = json.dumps([astuple(place) for place in turn.cited])
        texts = replace_unstorable(turn.question), replace_unstorable(turn.answer)
        row = (scope, turn.turn_id, *texts, turn.status, cited, now, now, scope)

        def write(db: Statements) -> None:
            # Two tabs must not give their turns the same number.
            db.lock(f"chapterverse.{scope}")
            db.change(_APPEND_SQL, row)
            db.change(_SHORTEN_SQL, (scope, scope, MAX_STORED_TURNS))
            _sweep(db, oldest, MAX_REMOVED_ROWS)

        self._database.run(write)

    def thread(self, thread_id: str, turns: int = DEFAULT_TURNS) -> StoredThread:
        scope, oldest = _scope(thread_id), self._oldest()
        values = (scope, oldest, turns, scope, oldest)
        rows = self._rows(_READ_SQL, values)
        with _reading_own_rows():
            latest_turns = sorted((_turn(row) for row in rows if row[1] == "turn"), key=lambda turn: turn.number)
        summary = next(((row[5], row[3], row[8]) for row in rows if row[1] == "summary"), ("", 0, 0))
        return StoredThread(tuple(latest_turns), *summary)

    def summarize(self, thread_id: str, summary: str, through: int, *, read: StoredThread) -> bool:
        scope, text = _scope(thread_id), replace_unstorable(summary)
        now, oldest = time_text(self._clock()), self._oldest()

        def write(db: Statements) -> int:
            # An expired summary would prevent the next one.
            db.change("DELETE FROM conversations WHERE scope = ? AND created_at < ?", (scope, oldest))
            if read.through:
                return db.change(_NEXT_SUMMARY_SQL, (text, through, now, scope, read.through))
            return db.change(_FIRST_SUMMARY_SQL, (scope, through, text, now, scope, through, oldest))

        return bool(self._database.run(write))

    def rate(self, rating: StoredRating) -> None:
        now, oldest = time_text(self._clock()), self._oldest()

        def write(db: Statements) -> None:
            # An expired turn counts as one that was never stored.
            turns = db.rows(_RATED_TURN_SQL, (rating.turn_id, oldest))
            scope, since = turns[0] if turns else ("", now)
            comment = replace_unstorable(rating.comment)
            db.change(_RATE_SQL, (rating.turn_id, scope, rating.rating, rating.reason, comment, since, now))
            _sweep(db, oldest, MAX_REMOVED_ROWS)

        self._database.run(write)

    def ratings(self, limit: int) -> list[StoredRating]:
        rows = self._rows(_READ_RATINGS_SQL, (self._oldest(), self._oldest(), limit))
        with _reading_own_rows():
            return [_rating(row) for row in rows]

    def turns(self) -> list[tuple[str, str, StoredTurn, str]]:
        rows = self._rows(_ALL_TURNS_SQL, (self._oldest(),))
        with _reading_own_rows():
            return [(scope.removeprefix("entity:"), at, _turn((*row,)), rating) for rating, scope, at, *row in rows]

    def match(self, entry_id: str) -> None:
        now, oldest = time_text(self._clock()), self._oldest(FAQ_DAYS)

        def write(db: Statements) -> None:
            db.change(_SWEEP_MATCHES_SQL, (oldest,))
            db.change(_MATCH_SQL, (entry_id, now))

        self._database.run(write)

    def matched_entries(self) -> frozenset[str]:
        return frozenset(str(row[0]) for row in self._rows(_READ_MATCHES_SQL, (self._oldest(FAQ_DAYS),)))

    def forget(self, thread_id: str) -> bool:
        scope = _scope(thread_id)

        def remove(db: Statements) -> int:
            # The ratings first, because they are found by their turns.
            return db.change(_FORGET_RATINGS_SQL, (scope, scope)) + db.change(_FORGET_SQL, (scope,))

        return bool(self._database.run(remove, otherwise=0))

    def expire(self, days: int) -> int:
        oldest = self._oldest(days)
        return self._database.run(lambda db: _sweep(db, oldest, _NO_LIMIT), otherwise=0)

    def _rows(self, sql: str, values: Row) -> list[Row]:
        return self._database.run(lambda db: db.rows(sql, values), otherwise=list[Row](), reading=True)

    def _oldest(self, days: int | None = None) -> str:
        """Return the time before which everything is expired."""
        return time_text(self._clock() - timedelta(days=self._days if days is None else days))


def sqlite_database(path: Path, lock_timeout: float = 2.0) -> Database:
    """Return the database in a file of its own, which only its owner may read.

    Args:
        lock_timeout: seconds to wait while another process writes.
    """
    return SqliteDatabase(path, prepare, _SQLITE_FAULTS, lock_timeout)


def prepare(db: Statements, make: bool) -> bool:
    """Return whether the tables are there. Make them if `make` is true, or if only some are missing."""
    names = ("conversations", "feedback", "faq_matches")
    if not make and not db.tables(*names):
        return False
    if db.tables(*names) < len(names):
        db.lock("chapterverse.conversations")
    # Another process may have made them meanwhile; tables that others write to must not be locked again.
    if db.tables(*names) < len(names):
        for statement in (
            _CREATE_TURNS_SQL.format(identity=db.identity),
            _CREATE_RATINGS_SQL,
            _CREATE_MATCHES_SQL,
            *_INDEXES_SQL,
        ):
            db.change(statement)
    return True


def _sweep(db: Statements, oldest: str, limit: int) -> int:
    return sum(db.change(sql.format(skipping=db.skipping), (oldest, limit)) for sql in (_SWEEP_SQL, _SWEEP_RATINGS_SQL))


@contextlib.contextmanager
def _reading_own_rows() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise RecordsFault("A row of the conversations was not written by this release: remove it.") from error


def _scope(thread_id: str) -> str:
    return f"entity:{thread_id}"


def _turn(row: Row) -> StoredTurn:
    _, _, turn_id, number, question, text, status, cited, _ = row
    return StoredTurn(turn_id, question, text, status, tuple(CitedSource(*c) for c in json.loads(cited)), number)


def _rating(row: Row) -> StoredRating:
    turn_id, rating, reason, comment, at, question, text, status, cited, number = row
    turn = (0, "turn", turn_id, number, question, text, status, cited, 0)
    return StoredRating(turn_id, rating, reason, comment, at, None if number is None else _turn(turn))
