"""Kept conversations: the values, and what a database must do with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

from chapterverse.errors import ChapterVerseError

if TYPE_CHECKING:
    from chapterverse_api.generation import ChatMessage


#: Of a thread's turns so many are read where nothing else is asked for: the latest.
TURNS = 12
#: Turns that are kept of one thread at most.
LONGEST = 200
#: Days for which it is kept that a FAQ entry answered.
FAQ_DAYS = 30


class RecordsFault(ChapterVerseError):
    """The database of the conversations can't be reached or used; an answer never depends on it."""


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A place that an answer rests on."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A message of a kept turn.

    Attributes:
        turn_index: its place among all messages that were ever kept of its thread, from 0.
    """

    role: Literal["user", "assistant"]
    turn_index: int
    text: str


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A question and its answer.

    Attributes:
        status: of the answer, as in a `ChatResponse`.
        number: its place among all turns that were ever kept of its thread, from 1; 0 before it is kept.
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

    @property
    def records(self) -> tuple[TurnRecord, TurnRecord]:
        """Return the question and the answer as documents of the type `turn`."""
        index = 2 * (self.number - 1)
        return TurnRecord("user", index, self.question), TurnRecord("assistant", index + 1, self.answer)


@dataclass(frozen=True, slots=True)
class StoredThread:
    """What is kept of a conversation.

    Attributes:
        turns: the latest, oldest first.
        summary: of all up to the turn of the number `through`; empty where there is none yet.
        through: 0 where there is no summary.
        summary_index: how many summaries of the thread came before this one.
    """

    turns: tuple[StoredTurn, ...] = ()
    summary: str = ""
    through: int = 0
    summary_index: int = 0

    @property
    def turn_range(self) -> tuple[int, int] | None:
        """The `turn_index` of the first and of the last message in the summary; None where there is none."""
        return (0, 2 * self.through - 1) if self.through else None

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

    def thread(self, thread_id: str, turns: int = TURNS) -> StoredThread:
        """Return what is kept of a thread, with so many of its latest turns; an empty one where there is nothing."""
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

    def match(self, entry_id: str) -> None:
        """Keep that a FAQ entry answers now, whatever the question was."""
        ...

    def matched(self) -> frozenset[str]:
        """Return the ids of the FAQ entries that answered in the last 30 days (`FAQ_DAYS`)."""
        ...

    def forget(self, thread_id: str) -> bool:
        """Remove all that is kept of a thread, and what was said of its turns; return whether there was anything."""
        ...

    def expire(self, days: int) -> int:
        """Remove what is older in all threads; return how many turns, summaries and ratings it was."""
        ...


class UnavailableRecords:
    """Records that can't be opened: every method raises the reason. Implements `Records`."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise RecordsFault(self._reason)

    append = thread = summarize = rate = rated = match = matched = forget = expire = _fail


def time_text(time: datetime) -> str:
    """Return ISO 8601 UTC, always of the same length, so that texts sort as times do."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"
