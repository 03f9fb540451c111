"""The table of ratings, in the database of the conversations.

A row is a turn: a second rating takes the place of the first. `scope` is the thread's, where the turn is kept by then,
and `created_at` from when its age counts: that of its turn, so that no comment outlives what it is about.
"""

from __future__ import annotations

import json

from chapterverse.database import Row, Statements
from chapterverse.model import sound
from chapterverse_api.records.types import CitedSource, StoredRating, StoredTurn

TABLE = """
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
INDEXES = (
    "CREATE INDEX IF NOT EXISTS feedback_age ON feedback (created_at)",
    "CREATE INDEX IF NOT EXISTS feedback_thread ON feedback (scope)",
    "CREATE INDEX IF NOT EXISTS feedback_time ON feedback (timestamp)",
    "CREATE INDEX IF NOT EXISTS conversations_turn ON conversations (chunk_id)",
)

_TURN = "SELECT scope, created_at FROM conversations WHERE chunk_id = ? AND type = 'turn' AND created_at >= ?"
_KEEP = """
    INSERT INTO feedback (turn_id, scope, rating, reason, comment, created_at, timestamp) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (turn_id) DO UPDATE SET
        scope = excluded.scope, rating = excluded.rating, reason = excluded.reason, comment = excluded.comment,
        created_at = excluded.created_at, timestamp = excluded.timestamp
"""
_READ = """
    SELECT f.turn_id, f.rating, f.reason, f.comment, f.timestamp, c.question, c.text, c.status, c.cited, c.id
    FROM feedback AS f LEFT JOIN conversations AS c
        ON c.chunk_id = f.turn_id AND c.type = 'turn' AND c.created_at >= ?
    WHERE f.created_at >= ? ORDER BY f.timestamp DESC, f.turn_id LIMIT ?
"""
# A rating may have come before its turn was kept, and then knows no thread.
_FORGET = """
    DELETE FROM feedback WHERE scope = ? OR turn_id IN (SELECT chunk_id FROM conversations WHERE scope = ?)
"""
_SWEEP = """
    DELETE FROM feedback WHERE turn_id IN (
        SELECT turn_id FROM feedback WHERE created_at < ? ORDER BY created_at LIMIT ? {skipping}
    )
"""


def keep(db: Statements, rated: StoredRating, now: str, oldest: str) -> None:
    """Write a row. Times are as `table` writes them; a turn from before `oldest` is not known any more."""
    scope, since = next(iter(db.rows(_TURN, (rated.turn_id, oldest))), ("", now))
    db.change(_KEEP, (rated.turn_id, scope, rated.rating, rated.reason, sound(rated.comment), since, now))


def read(db: Statements, oldest: str, limit: int) -> list[Row]:
    """Return the newest rows, each with what is kept of its turn, for `rated_of`."""
    return db.rows(_READ, (oldest, oldest, limit))


def forget(db: Statements, scope: str) -> int:
    """Remove what was said of a thread's turns; return how many rows it was."""
    return db.change(_FORGET, (scope, scope))


def sweep(db: Statements, oldest: str, most: int) -> int:
    """Remove what is too old; return how many rows it was."""
    return db.change(_SWEEP.format(skipping=db.skipping), (oldest, most))


def rated_of(row: Row) -> StoredRating:
    """Return what a row says.

    Raises:
        TypeError, ValueError: it was not written by us.
    """
    turn_id, rating, reason, comment, at, question, text, status, cited, number = row
    turn = None
    if number is not None:
        turn = StoredTurn(
            turn_id, question, text, status, tuple(CitedSource(*place) for place in json.loads(cited)), number
        )
    return StoredRating(turn_id, rating, reason, comment, at, turn)
