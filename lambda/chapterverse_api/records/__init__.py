"""Conversations that are kept: which values they are made of, what keeps them, and how that is opened.

Nothing is kept unless a database is named. What a reader selected on a page and what they tell of themselves is never
kept, whoever asks for it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.settings import Settings

if TYPE_CHECKING:
    from chapterverse_api.generation import ChatMessage

#: Of a thread's turns so many are read: the latest.
TURNS = 12
_MOST_DAYS = 3650


class RecordsFault(ChapterVerseError):
    """The database of the conversations can't be reached or used; an answer never depends on it."""


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A place that an answer rests on."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A question and its answer.

    Attributes:
        status: of the answer, as in a `ChatResponse`.
        number: its place among all turns that were ever kept; 0 before it is.
    """

    turn_id: str
    question: str
    answer: str
    status: str
    cited: tuple[CitedSource, ...] = ()
    number: int = 0

    @property
    def said(self) -> tuple[ChatMessage, ChatMessage]:
        from chapterverse_api.generation import ChatMessage

        return ChatMessage("user", self.question), ChatMessage("assistant", self.answer)


@dataclass(frozen=True, slots=True)
class StoredThread:
    """What is kept of a conversation.

    Attributes:
        turns: the latest, oldest first.
        summary: of all up to the turn of the number `through`; empty where there is none yet.
        through: 0 where there is no summary.
    """

    turns: tuple[StoredTurn, ...] = ()
    summary: str = ""
    through: int = 0

    @property
    def news(self) -> tuple[StoredTurn, ...]:
        """The turns that are not in the summary."""
        return tuple(turn for turn in self.turns if turn.number > self.through)


@dataclass(frozen=True, slots=True)
class StoredRating:
    """What a reader said of a turn.

    Attributes:
        rating: "up" or "down".
        reason: a word of the contract; empty where none was given.
        at: when it was said, ISO 8601 UTC; empty before it is kept.
        turn: what is kept of the turn itself; None where nothing is, as of an answer to a selection.
    """

    turn_id: str
    rating: str
    reason: str = ""
    comment: str = ""
    at: str = ""
    turn: StoredTurn | None = None


class Records(Protocol):
    """A place for conversations. Several processes may use it at once; what is too old it neither returns nor keeps.

    Raises, from every method:
        RecordsFault: it can't be reached or used; nothing was changed.
    """

    def append(self, thread_id: str, turn: StoredTurn) -> None:
        """Keep a turn, once whatever its number of calls, and remove some of what is too old in any thread."""
        ...

    def thread(self, thread_id: str) -> StoredThread:
        """Return what is kept of a thread; an empty one where there is nothing."""
        ...

    def summarize(self, thread_id: str, summary: str, through: int, *, read: StoredThread) -> bool:
        """Keep a summary in place of the one that was read.

        Returns:
            False, and nothing is changed, if another one took its place meanwhile, or the thread was forgotten.
        """
        ...

    def rate(self, rated: StoredRating) -> None:
        """Keep what a reader says of a turn, in place of what was said of it before; it grows old with its turn."""
        ...

    def rated(self, limit: int) -> list[StoredRating]:
        """Return what readers said, newest first."""
        ...

    def forget(self, thread_id: str) -> bool:
        """Remove all that is kept of a thread, and what was said of its turns; return whether there was anything."""
        ...

    def expire(self, days: int) -> int:
        """Remove what is older in all threads; return how many turns, summaries and ratings it was."""
        ...


def open_records(settings: Settings) -> Records | None:
    """Return what `settings.records` names, not connected yet; None if it names nothing.

    Raises:
        ConfigurationError: it names no database that this release knows, its package is missing, or
            `settings.records_days` is no number of days.
    """
    from chapterverse_api.records.table import Database, Table

    kind, _, place = settings.records.partition(":")
    days = days_of(settings)
    if not settings.records:
        return None
    database: Database
    if kind == "sqlite" and place:
        from chapterverse_api.records.sqlite import SqliteDatabase

        database = SqliteDatabase(Path(place))
    elif kind in ("postgres", "postgresql") and place:
        from chapterverse_api.records.postgres import PostgresDatabase

        database = PostgresDatabase(settings.records)
    else:
        # What it names instead may hold a password.
        raise ConfigurationError(
            "CHAPTERVERSE_RECORDS names no database: write sqlite:PATH or postgresql://USER:PASSWORD@HOST/NAME."
        )
    return Table(database, days)


def days_of(settings: Settings) -> int:
    """Return for how many days a conversation is kept.

    Raises:
        ConfigurationError: the setting is no such number.
    """
    said = settings.records_days.strip()
    if not (said.isascii() and said.isdecimal() and len(said) <= len(str(_MOST_DAYS)) and 1 <= int(said) <= _MOST_DAYS):
        raise ConfigurationError(
            f"CHAPTERVERSE_RECORDS_DAYS is no number of days: set it to a whole number from 1 to {_MOST_DAYS}."
        )
    return int(said)


def new_thread_id() -> str:
    """Return a name that nobody can guess: whoever knows a thread's name can go on with it, and have it forgotten."""
    return secrets.token_hex(16)
