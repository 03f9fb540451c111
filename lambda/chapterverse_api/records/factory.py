"""Opens the database that keeps conversations."""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.records.protocols import Records

_MAX_DAYS = 3650


def open_records(settings: Settings) -> Records | None:
    """Return the database that `settings.records` names, not connected yet; None if it names none.

    Raises:
        ConfigurationError: it names no database that this release knows, its address can't be read, or
            `settings.records_days` is no number of days.
        RecordsFault: its package is missing, or no region is named.
    """
    parse_days(settings)
    records: Records | None = open_offer("records", settings) if settings.records else None
    return records


def parse_days(settings: Settings) -> int:
    """Return the number of days for which a conversation is kept.

    Raises:
        ConfigurationError: the setting is no such number.
    """
    text = settings.records_days.strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_DAYS)) and 1 <= int(text) <= _MAX_DAYS):
        raise ConfigurationError(
            f"CHAPTERVERSE_RECORDS_DAYS is no number of days: set it to a whole number from 1 to {_MAX_DAYS}."
        )
    return int(text)
