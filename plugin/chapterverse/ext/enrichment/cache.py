"""The model's replies by content, prompt and model, so that no page is paid for twice."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from chapterverse.project import make_folder

_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"
#: Seconds to wait for another run's lock.
_LOCK_SECONDS = 5.0


class ReplyCache:
    """A SQLite file. It only saves money: a run ignores errors of reading and writing it. Safe between threads."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()

    def read(self, key: str) -> str | None:
        """Return the reply to a request, None if there is none."""
        if self._path is None or not self._path.exists():
            return None
        with contextlib.suppress(sqlite3.Error, OSError), self._lock, contextlib.closing(self._open()) as db:
            row = db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            return row[0] if row and isinstance(row[0], str) else None
        return None

    def write(self, key: str, reply: str) -> None:
        if self._path is None:
            return
        with contextlib.suppress(sqlite3.Error, OSError, ValueError), self._lock:
            make_folder(self._path.parent)
            with contextlib.closing(self._open()) as db, db:
                db.execute(_SCHEMA)
                db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, reply))

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(str(self._path), timeout=_LOCK_SECONDS)
