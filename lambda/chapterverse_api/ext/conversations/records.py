"""Kept conversations: the values, the contract of a database for them, and what opens it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.answer.event import parse_days
from chapterverse_api.draft.requests import ChatMessage

#: Latest turns of a thread that are read by default.
DEFAULT_TURNS = 12
#: The most turns that are stored of one thread.
MAX_STORED_TURNS = 200
#: Days for which a FAQ entry counts as used after an answer.
FAQ_DAYS = 30


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A section that an answer cites."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A question and its answer.

    Attributes:
        status: the status of the answer, as in a `ChatResponse`.
        number: its number among all turns that were ever stored of its thread, from 1; 0 before it is stored.
    """

    turn_id: str
    question: str
    answer: str
    status: str
    cited: tuple[CitedSource, ...] = ()
    number: int = 0

    @property
    def messages(self) -> tuple[ChatMessage, ChatMessage]:
        return ChatMessage("user", self.question), ChatMessage("assistant", self.answer)


@dataclass(frozen=True, slots=True)
class StoredThread:
    """The stored part of a conversation.

    Attributes:
        turns: the latest turns, oldest first.
        summary: the summary of all turns up to the number `through`; empty if there is none yet.
        through: the number of the latest turn in the summary; 0 without a summary.
        summary_index: the number of earlier summaries of the thread.
    """

    turns: tuple[StoredTurn, ...] = ()
    summary: str = ""
    through: int = 0
    summary_index: int = 0

    @property
    def new_turns(self) -> tuple[StoredTurn, ...]:
        """The turns that are not in the summary."""
        return tuple(turn for turn in self.turns if turn.number > self.through)


@dataclass(frozen=True, slots=True)
class StoredRating:
    """A reader's rating of a turn.

    Attributes:
        rating: "up" or "down".
        reason: a word of the contract; empty if the reader gave none.
        at: the time of the rating, ISO 8601 UTC; empty before it is stored.
        turn: the stored turn; None if it is not stored, such as an answer to a selection.
    """

    turn_id: str
    rating: str
    reason: str = ""
    comment: str = ""
    at: str = ""
    turn: StoredTurn | None = None


class Records(Protocol):
    """A database of conversations. Several processes may use it at once. It neither returns nor keeps expired rows.

    Raises, from every method:
        RecordsFault: it can't be reached or used; nothing was changed.
    """

    def append(self, thread_id: str, turn: StoredTurn) -> None:
        """Store a turn. A repeated call changes nothing. Also remove some expired rows of any thread."""
        ...

    def thread(self, thread_id: str, turns: int = DEFAULT_TURNS) -> StoredThread:
        """Return a thread with its summary and at most `turns` of its latest turns; empty if nothing is stored."""
        ...

    def summarize(self, thread_id: str, summary: str, through: int, *, read: StoredThread) -> bool:
        """Replace the summary that was read.

        Args:
            through: the number of the latest turn in the new summary.
            read: the thread from which the summary was made.

        Returns:
            False, and nothing is changed, if another process replaced the summary or removed the thread meanwhile.
        """
        ...

    def rate(self, rating: StoredRating) -> None:
        """Store a rating in place of an earlier one of the same turn. It expires with its turn."""
        ...

    def ratings(self, limit: int) -> list[StoredRating]:
        """Return the ratings, newest first."""
        ...

    def turns(self) -> list[tuple[str, str, StoredTurn, str]]:
        """Return the turns of all threads without their answers, each as its thread's id, its time, it and its rating.

        The rating is empty if there is none.
        """
        ...

    def match(self, entry_id: str) -> None:
        """Store the time of now as that at which a FAQ entry answered last."""
        ...

    def matched_entries(self) -> frozenset[str]:
        """Return the ids of the FAQ entries that answered in the last 30 days (`FAQ_DAYS`)."""
        ...

    def forget(self, thread_id: str) -> bool:
        """Remove a thread with its ratings; return whether there was anything."""
        ...

    def expire(self, days: int) -> int:
        """Remove everything older than `days` in all threads; return the number of turns, summaries and ratings."""
        ...


def time_text(time: datetime) -> str:
    """Return a time as ISO 8601 UTC, always of the same length, so that texts sort as times do."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


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
