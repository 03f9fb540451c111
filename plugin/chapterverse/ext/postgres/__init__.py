"""A Postgres database, also behind Neon and other poolers. Implements `chapterverse.database.Database`.

No message quotes the address, or libpq's message about it. If a password with an `@` or a `/` is not percent-encoded,
libpq takes a part of it for the host, the port or the database.
"""

from __future__ import annotations

import contextlib
import re
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from chapterverse.database import Faults, Prepare, Row, Statements, make_fault
from chapterverse.errors import ChapterVerseError, ConfigurationError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_T = TypeVar("_T")

#: Patterns of libpq's messages with the failure's name in `Faults`. A failed connection has no SQLSTATE.
_FAILURES = (
    (
        'authentication|no password supplied|pg_hba.conf|no such user|role ".*" (does not exist|is not permitted)',
        "user",
    ),
    ("SSL|TLS|certificate", "tls"),
    ('database ".*" does not exist|no such database|permission denied for database', "database"),
    ("resolve host|translate host name", "host"),
    (r'invalid \w+ value|parameter "?\w+|unsupported startup parameter', "option"),
)
#: lock_not_available, serialization_failure, deadlock_detected.
_BUSY_STATES = {"55P03", "40001", "40P01"}
_SLOW_STATE, _NOT_ALLOWED_STATE = "57014", "42501"
#: Connection exceptions, shutdowns, time limits that end a session.
_LOST_STATES = ("08", "57P", "25P03", "25P04")

#: A hint of other programs that the server is a pooler, which libpq rejects; it changes nothing here.
_HINT = re.compile(r"(?<=[?&])pgbouncer=[^&]*&?")


class PostgresDatabase:
    """Tables in the first schema of the connection's search path. Nothing is connected before `run`.

    No state of a connection outlives its transaction, as a pooler in transaction mode requires.

    Args:
        connect_seconds: seconds to reach the server, unless the address states others.
        silence_seconds: seconds after which a silent server counts as failed, unless the address states others.
        limits: seconds for a transaction's statements by the names of Postgres's settings, such as "lock_timeout".
        pauses: seconds between the tries to connect, long enough for a database to wake up or start.
        idle: unused connections that are kept open.

    Raises:
        ChapterVerseError: the fault "address", or "missing" if psycopg is not installed.
    """

    def __init__(
        self,
        uri: str,
        prepare: Prepare,
        faults: Faults,
        *,
        connect_seconds: int,
        silence_seconds: int,
        limits: Mapping[str, float],
        pauses: Sequence[float] = (),
        idle: int = 0,
    ) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise make_fault(faults, "missing") from error
        defaults = {
            "connect_timeout": connect_seconds,
            "client_encoding": "UTF8",
            "fallback_application_name": "chapterverse",
            "keepalives_idle": 20,
            "keepalives_interval": 5,
            "keepalives_count": 2,
            "tcp_user_timeout": 1000 * silence_seconds,
        }
        try:
            self._address: dict[str, Any] = {**defaults, **conninfo_to_dict(_without_hint(uri))}
        except (psycopg.Error, UnicodeError):
            # The cause quotes the address.
            raise make_fault(faults, "address") from None
        self._prepare = prepare
        self._faults = faults
        self._limits = limits
        self._pauses = pauses
        self._max_idle = idle
        self._idle: deque[Connection] = deque()
        # The connections have no other owner that could close them.
        weakref.finalize(self, _close, self._idle)
        self._is_ready = False

    def run(self, work: Callable[[Statements], _T], *, otherwise: _T | None = None, reading: bool = False) -> _T:
        import psycopg

        idle = self._idle_connection()
        db, is_done = idle or self._connect(), False
        try:
            with db.transaction():
                # "true" limits a setting to the transaction.
                for name, seconds in self._limits.items():
                    db.execute("SELECT set_config(%s, %s, true)", (name, str(max(1, round(1000 * seconds)))))
                statements = _PostgresStatements(db)
                is_ready = self._is_ready or self._prepare(statements, otherwise is None)
                result = work(statements) if is_ready else cast(_T, otherwise)
                is_done = True
        except BaseException as error:
            is_unknown = is_done and db.closed
            db.close()
            if not isinstance(error, psycopg.Error | UnicodeError):
                raise
            self._is_ready = False
            name, state = _failure(error)
            # Servers and poolers close idle connections, which shows only when they are used.
            if idle and name == "lost":
                return self.run(work, otherwise=otherwise, reading=reading)
            raise make_fault(
                self._faults, "commit" if is_unknown else name, detail=_detail(error), state=state
            ) from error
        # Without idle connections the tables are checked again each time.
        self._is_ready = is_ready and self._max_idle > 0
        if len(self._idle) < self._max_idle:
            self._idle.append(db)
        else:
            db.close()
        return result

    def _idle_connection(self) -> Connection | None:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return None

    def _connect(self) -> Connection:
        import psycopg

        for pause in (*self._pauses, None):
            try:
                # A pooler may give every transaction another session, which doesn't know a prepared statement.
                db = psycopg.connect(**self._address, prepare_threshold=None, autocommit=True)
                db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                return db
            except (psycopg.Error, ValueError) as error:
                text = str(error)
                name = next((name for pattern, name in _FAILURES if re.search(pattern, text)), "unreachable")
                if pause is None or name != "unreachable":
                    raise make_fault(self._faults, name) from None
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")


class _PostgresStatements:
    identity = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    code_points = 'COLLATE "C"'
    time = "TIMESTAMPTZ(0)"
    time_text = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
    items = "json_array_elements(?::json)"
    item = "value ->> {}"
    skipping = "FOR UPDATE SKIP LOCKED"

    def __init__(self, db: Connection) -> None:
        self._db = db

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._db.execute(_mark(sql), values).fetchall()

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        return self._db.cursor().stream(_mark(sql), values)

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        return self._db.execute(_mark(sql), values).rowcount

    def tables(self, *names: str) -> int:
        # Not by `to_regclass`, which caches within a transaction that a table is missing.
        return len(
            self.rows("SELECT 1 FROM pg_class WHERE relname = ANY(?) AND pg_table_is_visible(oid)", (list(names),))
        )

    def lock(self, name: str) -> None:
        self.rows("SELECT pg_advisory_xact_lock(hashtext(?))", (name,))

    def version(self, name: str) -> int:
        if not self.tables(name):
            return 0
        return int(self.rows(f"SELECT coalesce(max(version), 0) FROM {name}")[0][0])  # noqa: S608

    def record_migration(self, name: str, number: int) -> None:
        self.change(
            f"CREATE TABLE IF NOT EXISTS {name}"
            " (version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
        )
        self.change(f"INSERT INTO {name} (version) VALUES (?)", (number,))  # noqa: S608


def connection_faults(subject: str, variable: str, error: type[ChapterVerseError]) -> Faults:
    """Return the errors of a connection that is not made.

    Args:
        subject: what is kept there, in small letters.
        variable: the setting with the address.
        error: the type of the errors, but for those of the address.
    """
    title = subject[:1].upper() + subject[1:]
    return {
        "option": ConfigurationError(f"The address of {subject} has an option that is not accepted: correct it."),
        "user": error(f"{title} refuses the user or the password: correct {variable}."),
        "tls": error(f"{title} can't be reached with the TLS that sslmode asks for: correct one of the two."),
        "database": error(f"The server of {subject} has no such database, or keeps it closed: create it first."),
        "host": error(f"The host of {subject} can't be found: correct {variable}."),
        "unreachable": error(f"{title} can't be reached: see that its server runs, and correct {variable}."),
    }


def _without_hint(uri: str) -> str:
    address = _HINT.sub("", uri)
    return uri if address == uri else address.rstrip("?&")


def _mark(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _failure(error: Exception) -> tuple[str, str]:
    """Return the name of a failure in `Faults`, and its SQLSTATE."""
    import psycopg

    state = getattr(error, "sqlstate", None) or ""
    if state in _BUSY_STATES:
        return "busy", state
    if state == _SLOW_STATE:
        return "slow", state
    if state.startswith(_LOST_STATES) or (isinstance(error, psycopg.OperationalError) and not state):
        return "lost", state
    if not state:
        return "text", state
    return ("damaged" if state.startswith("42") and state != _NOT_ALLOWED_STATE else "unusable"), state


def _detail(error: Exception) -> str:
    """Return the server's message, which may name tables and users, but never the address."""
    import psycopg

    return (error.diag.message_primary if isinstance(error, psycopg.Error) else None) or ""


def _close(connections: deque[Connection]) -> None:
    for db in connections:
        db.close()
