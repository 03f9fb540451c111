"""Counters in an SQLite file, for the processes of one machine. Implements `Limiter`."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from chapterverse.database import Faults, failure_name, make_fault, make_file
from chapterverse.settings import Settings
from chapterverse_api.limits import ACCOUNT_SECONDS, LimiterFault, RateWindow, Reservation

#: Old rows that a write removes from each table at most. They are more than it adds, so old rows don't pile up.
_MAX_SWEPT_ROWS = 8

_FAULTS: Faults = {
    "busy": LimiterFault("Others are writing to the counters in {place}: wait for them."),
    "unusable": LimiterFault("The counters in {place} can't be used ({detail})."),
    "damaged": LimiterFault("The file {place} is no database of counters: remove it, or name another."),
}

_TABLES = {
    "limiter_requests": "client TEXT, seconds INTEGER, start INTEGER, count INTEGER NOT NULL, ends REAL NOT NULL,"
    " PRIMARY KEY (client, seconds, start)",
    "limiter_accounts": "account TEXT PRIMARY KEY, spent INTEGER NOT NULL, ends REAL NOT NULL",
    "limiter_reservations": "id TEXT PRIMARY KEY, account TEXT NOT NULL, micros INTEGER NOT NULL, ends REAL NOT NULL",
    "limiter_tokens": "token TEXT PRIMARY KEY, ends REAL NOT NULL",
}


class SqliteLimiter:
    """Counters in a file of their own, which is made with its folder at the first use. Only its owner may read it.

    Args:
        path: a file on a disk of this machine, because a write-ahead log does not work over a network.
        lock_timeout: seconds to wait while others write.
    """

    def __init__(self, path: str | Path, lock_timeout: float = 2.0) -> None:
        self._path = Path(path)
        self._lock_timeout = lock_timeout
        self._lock = Lock()
        self._db: sqlite3.Connection | None = None
        self._file = (0, 0)

    @classmethod
    def from_settings(cls, _: Settings, path: str) -> SqliteLimiter:
        return cls(path)

    def admit(self, client: str, windows: Sequence[RateWindow], now: float) -> float | None:
        with self._transaction() as db:
            counted = db.execute("SELECT seconds, start, count FROM limiter_requests WHERE client = ?", (client,))
            counts = {(length, start): _as_count(count) for length, start, count in counted}
            full = [w for w in windows if counts.get((w.seconds, w.start(now)), 0) >= w.limit]
            if not full and windows:
                # One window longer than it lasts, for a process whose clock is a little late.
                rows = [(client, w.seconds, w.start(now), w.start(now) + 2 * w.seconds) for w in windows]
                db.executemany(
                    "INSERT INTO limiter_requests (client, seconds, start, count, ends) VALUES (?, ?, ?, 1, ?)"
                    " ON CONFLICT (client, seconds, start) DO UPDATE SET count = count + 1",
                    rows,
                )
                _sweep(db, now, "limiter_requests")
        return max((window.seconds_left(now) for window in full), default=None)

    def reserve(self, account: str, micros: int, cap: int, now: float) -> Reservation | None:
        own_id, ends = secrets.token_hex(16), now + ACCOUNT_SECONDS
        # A reservation must survive a power cut; the other rows need only survive the process.
        with self._transaction(durable=True) as db:
            spent = _spent_micros(db, account)
            if spent + micros > cap:
                return None
            db.execute(
                "INSERT INTO limiter_accounts (account, spent, ends) VALUES (?, ?, ?)"
                " ON CONFLICT (account) DO UPDATE SET spent = spent + excluded.spent, ends = excluded.ends",
                (account, micros, ends),
            )
            db.execute("INSERT INTO limiter_reservations VALUES (?, ?, ?, ?)", (own_id, account, micros, ends))
            _sweep(db, now, "limiter_accounts", "limiter_reservations")
        return Reservation(own_id, account, micros, spent)

    def settle(self, reservation: Reservation, micros: int) -> None:
        with self._transaction() as db:
            removed = db.execute("DELETE FROM limiter_reservations WHERE id = ? RETURNING micros", (reservation.id,))
            for (micros_reserved,) in removed.fetchall():
                reserved = _as_count(micros_reserved)
                db.execute(
                    "UPDATE limiter_accounts SET spent = spent - ? WHERE account = ?",
                    (reserved - min(micros, reserved), reservation.account),
                )

    def spent_micros(self, account: str) -> int:
        with self._transaction() as db:
            return _spent_micros(db, account)

    def use_token(self, token: str, until: float, now: float) -> bool:
        with self._transaction() as db:
            added = db.execute(
                "INSERT INTO limiter_tokens (token, ends) VALUES (?, ?)"
                " ON CONFLICT (token) DO UPDATE SET ends = excluded.ends WHERE ends <= ?",
                (token, until, now),
            )
            _sweep(db, now, "limiter_tokens")
            return added.rowcount == 1

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            self._close()

    def __del__(self) -> None:
        self._close()

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block alone among all threads and processes. Commit if it ends without an error, else roll back."""
        # The threads of one process must not wait for each other for ever either.
        if not self._lock.acquire(timeout=self._lock_timeout):
            raise make_fault(_FAULTS, "busy", place=self._path)
        try:
            db = self._open()
            # FULL waits for the disk. NORMAL loses the latest writes at most, and only if the machine fails.
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        except OSError as error:
            raise make_fault(_FAULTS, "unusable", place=self._path, detail=error.strerror) from error
        except sqlite3.Error as error:
            self._close()
            raise make_fault(_FAULTS, failure_name(error), place=self._path, detail=error) from error
        finally:
            self._lock.release()

    def _open(self) -> sqlite3.Connection:
        """Return the connection; a file that was removed or replaced meanwhile is opened anew."""
        make_file(self._path)
        stat = self._path.stat()
        if self._db is None or (stat.st_dev, stat.st_ino) != self._file:
            self._close()
            # Threads may share it, because each one holds the lock.
            self._db = sqlite3.connect(
                self._path, timeout=self._lock_timeout, isolation_level=None, check_same_thread=False
            )
            self._file = (stat.st_dev, stat.st_ino)
            self._prepare(self._db)
        return self._db

    def _prepare(self, db: sqlite3.Connection) -> None:
        # SQLite does not wait when two processes turn on the log at once.
        until = time.monotonic() + self._lock_timeout
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if failure_name(error) != "busy" or time.monotonic() > until:
                    raise
                time.sleep(0.005)
        for name, columns in _TABLES.items():
            db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
            db.execute(f"CREATE INDEX IF NOT EXISTS {name}_ends ON {name} (ends)")

    def _close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None


def _spent_micros(db: sqlite3.Connection, account: str) -> int:
    row = db.execute("SELECT spent FROM limiter_accounts WHERE account = ?", (account,)).fetchone()
    return _as_count(row[0]) if row else 0


def _as_count(value: object) -> int:
    """Return the count that a row holds.

    Raises:
        sqlite3.DatabaseError: it is of another type, so another program wrote the file.
    """
    if type(value) is not int or value < 0:
        raise sqlite3.DatabaseError
    return value


def _sweep(db: sqlite3.Connection, now: float, *tables: str) -> None:
    """Remove a few expired rows."""
    for table in tables:
        db.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE ends <= ? LIMIT {_MAX_SWEPT_ROWS})",  # noqa: S608
            (now,),
        )
