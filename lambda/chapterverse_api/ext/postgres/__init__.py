"""Conversations on Postgres."""

from __future__ import annotations

from chapterverse.database import Database, Faults
from chapterverse.errors import ConfigurationError
from chapterverse.ext.postgres import PostgresDatabase, connection_faults
from chapterverse.settings import Settings
from chapterverse_api.answer.event import RecordsFault, parse_days
from chapterverse_api.ext.conversations.table import RecordsTable, prepare

_FAULTS: Faults = {
    "missing": RecordsFault('Conversations on Postgres need psycopg: pip install "chapterverse[postgres]".'),
    "address": ConfigurationError(
        "CHAPTERVERSE_RECORDS is no address of a Postgres database: write postgresql://USER:PASSWORD@HOST/NAME, the "
        "password percent-encoded."
    ),
    **connection_faults("the database of the conversations", "CHAPTERVERSE_RECORDS", RecordsFault),
    "lost": RecordsFault("The connection to the database of the conversations broke off, or took too long."),
    # The server's message is not shown, because it may hold a password.
    "unusable": RecordsFault(
        "The database of the conversations refuses (SQLSTATE {state}): see that its user may write and that the table "
        "named conversations is ours."
    ),
}


def open_records(settings: Settings, _: str) -> RecordsTable:
    """Return the conversations that `settings.records` names, not connected yet; see `postgres_database`."""
    return RecordsTable(postgres_database(settings.records), parse_days(settings))


def postgres_database(uri: str) -> Database:
    """Return the database at an address. Connections are used again, and waits are short because a reader waits too.

    Raises:
        ConfigurationError: the address can't be read, or psycopg is missing.
    """
    limits = {"statement_timeout": 2.0, "lock_timeout": 2.0}
    return PostgresDatabase(uri, prepare, _FAULTS, connect_seconds=3, silence_seconds=5, limits=limits, idle=4)
