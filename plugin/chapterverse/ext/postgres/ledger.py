"""The ledger on Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from chapterverse.database import Faults
from chapterverse.errors import ConfigurationError, IndexCorrupt, IndexFault, IndexLocked
from chapterverse.ext.postgres import PostgresDatabase, connection_faults
from chapterverse.ledger import Ledger, prepare
from chapterverse.settings import Settings

_FAULTS: Faults = {
    "missing": ConfigurationError('A Postgres ledger needs psycopg: pip install "chapterverse[postgres]".'),
    "address": ConfigurationError(
        "The address of the Postgres ledger can't be read: write postgresql://USER:PASSWORD@HOST/NAME, the password "
        "percent-encoded."
    ),
    **connection_faults("the Postgres ledger", "CHAPTERVERSE_LEDGER", IndexFault),
    "lost": IndexFault("The connection to the Postgres ledger broke off: nothing was written."),
    "commit": IndexFault("The connection to the Postgres ledger broke off at the last moment: run again."),
    "busy": IndexLocked("Another process is writing to the Postgres ledger: wait for it, then run again."),
    "damaged": IndexCorrupt("The tables of the Postgres ledger are not ours ({detail}): give it a schema of its own."),
    "text": IndexFault(
        "The Postgres ledger can't be used (the text of a name or a path can't be stored): nothing was written."
    ),
    **dict.fromkeys(
        ("slow", "unusable"), IndexFault("The Postgres ledger can't be used ({detail}): nothing was written.")
    ),
}

#: Seconds between the tries to connect to Postgres.
_CONNECT_PAUSES = (0.5, 1.0, 2.0)


def open_ledger(settings: Settings, _: str) -> Ledger:
    """Return the ledger that `settings.ledger` names; see `postgres_ledger`."""
    return postgres_ledger(settings.ledger)


def postgres_ledger(uri: str, lock_timeout: float = 10.0, pauses: Sequence[float] = _CONNECT_PAUSES) -> Ledger:
    """Return the ledger at an address, not connected yet.

    Args:
        lock_timeout: seconds to wait while another process writes.
        pauses: seconds to wait between the tries to connect.

    Raises:
        ConfigurationError: the address can't be read, or psycopg is missing.
    """
    return Ledger(
        PostgresDatabase(
            uri,
            partial(prepare, "The Postgres ledger"),
            _FAULTS,
            connect_seconds=10,
            silence_seconds=30,
            limits={"lock_timeout": lock_timeout},
            pauses=pauses,
        )
    )
