"""Kept conversations: the values, and what a database must do with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from chapterverse.errors import ChapterVerseError

if TYPE_CHECKING:
    from chapterverse_api.generation import ChatMessage


#: Of a thread's turns so many are read: the latest.
TURNS = 12


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

    def rate(self, rating: StoredRating) -> None:
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
