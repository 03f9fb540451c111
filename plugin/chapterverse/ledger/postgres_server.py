"""Connects to Postgres: the address, retries, and failures in one sentence.

No sentence says anything of the address, nor what libpq says of it: where a password with an `@` or a `/` was not
percent-encoded, libpq takes a piece of it for the host, the port or the database.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexCorrupt, IndexFault, IndexLocked

if TYPE_CHECKING:
    import psycopg

#: Seconds between the tries to connect: a database that sleeps or starts is there by then.
PAUSES = (0.5, 1.0, 2.0)

#: What an address may overrule. A server that fell silent is given up after half a minute, not after two hours.
_DEFAULTS = {
    "connect_timeout": 10,
    "client_encoding": "UTF8",
    "fallback_application_name": "chapterverse",
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 30_000,
}

#: Of a failed connection there is no SQLSTATE, only libpq's text: what is found in it, and what to tell the user.
_REFUSALS: tuple[tuple[str, ChapterVerseError], ...] = (
    (
        'authentication|no password supplied|pg_hba.conf|role ".*" (does not exist|is not permitted)',
        IndexFault("The Postgres ledger refuses the user or the password: correct CHAPTERVERSE_LEDGER."),
    ),
    (
        "SSL|TLS|certificate",
        IndexFault("The Postgres ledger can't be reached with the TLS that sslmode asks for: correct one of the two."),
    ),
    (
        'database ".*" does not exist|no such database|permission denied for database',
        IndexFault("The server of the Postgres ledger has no such database, or keeps it closed: create it first."),
    ),
    (
        "resolve host|translate host name",
        IndexFault("The host of the Postgres ledger can't be found: correct CHAPTERVERSE_LEDGER."),
    ),
    (
        r'invalid \w+ value|parameter "?\w+|unsupported startup parameter',
        ConfigurationError("The address of the Postgres ledger has an option that is not accepted: correct it."),
    ),
)

_LOCKED = {"55P03", "40001", "40P01"}  # lock_not_available, serialization_failure, deadlock_detected
_LOST = ("08", "57P", "25P03", "25P04")  # connection exceptions, shutdowns, time limits that end the session
_NOT_ALLOWED = "42501"


class PostgresServer:
    """A database by its address; nothing is connected before `transaction`.

    Raises:
        ConfigurationError: the address can't be read, or psycopg is missing.
    """

    def __init__(self, uri: str, pauses: Sequence[float] = PAUSES) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise ConfigurationError(
                'A Postgres ledger needs psycopg: pip install "chapterverse[postgres]".'
            ) from error
        try:
            self._address: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(uri)}
        except (psycopg.Error, UnicodeError):
            # The cause quotes the address.
            raise ConfigurationError(
                "The address of the Postgres ledger can't be read: write postgresql://USER:PASSWORD@HOST/NAME, the"
                " password percent-encoded."
            ) from None
        self._pauses = pauses

    @contextlib.contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """Connect, and commit what is done with the connection, or leave no trace; then disconnect.

        Raises:
            IndexFault: the server can't be reached, or failed; `IndexLocked` and `IndexCorrupt` where it says so.
        """
        import psycopg

        # Without a commit, closing rolls back.
        with contextlib.closing(self._connect()) as db:
            try:
                yield db
            except (psycopg.Error, UnicodeError) as error:
                raise _explained(error) from error
            try:
                db.commit()
            except psycopg.Error as error:
                if db.closed:
                    raise IndexFault(
                        "The connection to the Postgres ledger broke off at the last moment: run again."
                    ) from error
                raise _explained(error) from error

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        for pause in (*self._pauses, None):
            try:
                # A pooler may give every transaction another session, where no prepared statement would be found.
                db = psycopg.connect(**self._address, prepare_threshold=None)
                db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                return db
            except (psycopg.Error, ValueError) as error:
                refused = _refusal(str(error))
            if refused:
                raise refused
            if pause is not None:
                time.sleep(pause)
        raise IndexFault("The Postgres ledger can't be reached: see that its server runs, and correct its address.")


def _refusal(text: str) -> ChapterVerseError | None:
    """Return what a server that was reached, or an address, has against us; None where trying again may help."""
    refused = next((error for pattern, error in _REFUSALS if re.search(pattern, text)), None)
    # A fresh one, for an exception carries the traceback of where it was raised.
    return type(refused)(*refused.args) if refused else None


def _explained(error: Exception) -> IndexFault:
    import psycopg

    state = getattr(error, "sqlstate", None) or ""
    if state in _LOCKED:
        return IndexLocked("Another process is writing to the Postgres ledger: wait for it, then run again.")
    if state.startswith(_LOST) or (isinstance(error, psycopg.OperationalError) and not state):
        return IndexFault("The connection to the Postgres ledger broke off: nothing was written.")
    said = _said(error)
    if state.startswith("42") and state != _NOT_ALLOWED:
        return IndexCorrupt(f"The tables of the Postgres ledger are not ours ({said}): give it a schema of its own.")
    return IndexFault(f"The Postgres ledger can't be used ({said}): nothing was written.")


def _said(error: Exception) -> str:
    """Return the server's own words, which name tables and users, never the address."""
    import psycopg

    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return said or "the text of a name or a path can't be stored"
