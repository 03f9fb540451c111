"""Conversations on Postgres, Neon and other poolers included. Implements `records.database.Database`.

No sentence holds anything of the address, nor what the server says of it: both may hold a password.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from chapterverse.errors import ConfigurationError
from chapterverse_api.records.database import Row, Statements
from chapterverse_api.records.table import schema
from chapterverse_api.records.types import RecordsFault

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

#: What an address may overrule. A reader waits, so a server that doesn't answer is given up soon.
_DEFAULTS = {
    "connect_timeout": 3,
    "client_encoding": "UTF8",
    "fallback_application_name": "chapterverse",
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}
#: Milliseconds that a statement may take.
_PATIENCE = 2000
#: Connections that are kept open while nobody uses them.
_IDLE = 4
#: SQLSTATEs of connections that the other side ends: exceptions of the wire, shutdowns, limits of time at rest.
_DROPPED = ("08", "57P", "25P03", "25P04")
_TABLES = 2
# Not by `to_regclass`, which remembers within a transaction what was not there.
_FOUND = "SELECT relname FROM pg_class WHERE relname IN ('conversations', 'feedback') AND pg_table_is_visible(oid)"
_MAKING = "SELECT pg_advisory_xact_lock(hashtext('chapterverse.conversations'))"


class PostgresDatabase:
    """A table in the first schema of the search path, over connections that are used again.

    Raises:
        ConfigurationError: the address can't be read, or psycopg is missing.
    """

    skipping = "FOR UPDATE SKIP LOCKED"

    def __init__(self, uri: str) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise ConfigurationError(
                'Conversations on Postgres need psycopg: pip install "chapterverse[postgres]".'
            ) from error
        try:
            self._address: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(uri)}
        except (psycopg.Error, UnicodeError):
            # The cause quotes the address.
            raise ConfigurationError(
                "CHAPTERVERSE_RECORDS is no address of a Postgres database: write"
                " postgresql://USER:PASSWORD@HOST/NAME, the password percent-encoded."
            ) from None
        self._idle: deque[Connection] = deque()
        # Whoever drops us has nobody else to close them.
        weakref.finalize(self, _close, self._idle)
        self._made = False

    def run(self, work: Callable[[Statements], T], *, otherwise: T | None = None) -> T:
        import psycopg

        try:
            if (db := self._rested()) is not None:
                # Servers and poolers drop connections that rest; whether one lives is known when it is used.
                with _unless_dropped():
                    return self._transacted(db, work, otherwise)
            return self._transacted(self._connect(), work, otherwise)
        except (psycopg.Error, UnicodeError) as error:
            self._made = False
            raise _explained(error) from error

    def _rested(self) -> Connection | None:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return None

    def _transacted(self, db: Connection, work: Callable[[Statements], T], otherwise: T | None) -> T:
        try:
            with db.transaction():
                # "true" ends the settings with the transaction, as a pooler demands.
                limits = "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)"
                db.execute(limits, (str(_PATIENCE), str(_PATIENCE)))
                made = self._made or _ready(db, make=otherwise is None)
                result = work(_Statements(db)) if made else otherwise
        except BaseException:
            db.close()
            raise
        self._made = made
        if len(self._idle) < _IDLE:
            self._idle.append(db)
        else:
            db.close()
        return result  # type: ignore[return-value]

    def _connect(self) -> Connection:
        import psycopg

        # A pooler may give every transaction another session, where no prepared statement would be found.
        try:
            return psycopg.connect(**self._address, prepare_threshold=None, autocommit=True)
        except (psycopg.Error, ValueError):
            raise RecordsFault(
                "The database of the conversations can't be reached: see that its server runs, and correct"
                " CHAPTERVERSE_RECORDS."
            ) from None


def _close(connections: deque[Connection]) -> None:
    for db in connections:
        db.close()


@contextlib.contextmanager
def _unless_dropped() -> Iterator[None]:
    """Pass over the failure of a connection that the other side has closed."""
    import psycopg

    try:
        yield
    except psycopg.OperationalError as error:
        if error.sqlstate is not None and not error.sqlstate.startswith(_DROPPED):
            raise


def _ready(db: Connection, *, make: bool) -> bool:
    """Return whether the tables are there, after making what is missing if that is asked for.

    Where an earlier release made one of them, the other is made in any case.
    """
    found = _found(db)
    if found == _TABLES:
        return True
    if not (make or found):
        return False
    db.execute(_MAKING)
    # Who comes second must not lock tables that others already write to.
    if _found(db) < _TABLES:
        for statement in schema("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"):
            db.execute(statement.encode())
    return True


def _found(db: Connection) -> int:
    return len(db.execute(_FOUND).fetchall())


class _Statements:
    def __init__(self, db: Connection) -> None:
        self._db = db

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        return self._db.execute(_dialect(sql), values).fetchall()

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        return self._db.execute(_dialect(sql), values).rowcount


def _dialect(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _explained(error: Exception) -> RecordsFault:
    state = getattr(error, "sqlstate", None)
    if state is None or state.startswith((*_DROPPED, "57014", "55P03")):
        return RecordsFault("The connection to the database of the conversations broke off, or took too long.")
    return RecordsFault(
        f"The database of the conversations refuses (SQLSTATE {state}): see that its user may write and that the table"
        " named conversations is ours."
    )
