"""What a turn passes on: the hook `event`, and to whom keeps conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.contract import ChatQuery, ChatResponse, Feedback
from chapterverse_api.conversation.transcript import Conversation, Signer
from chapterverse_api.draft.draft import Writer

_MAX_DAYS = 3650
_MEASURED_STAGES = ("embed", "search", "rerank", "generate")


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """An answer that the reader has.

    Attributes:
        thread_id: the conversation; None if the query names none and none are kept.
        seconds: from the question to the last word of the answer.
        stages: seconds that each part took.
        is_degraded: whether not everything went as configured, or the day's budget chose the models.
        entry_id: by what the database keeps that a FAQ entry answered; empty or None for nothing.
        writer: a model that the turn may still ask, paid from its budget; None if there is none.
        seconds_left: until the turn must end.
    """

    query: ChatQuery
    response: ChatResponse
    thread_id: str | None
    seconds: float
    stages: Mapping[str, float]
    is_degraded: bool
    entry_id: str | None
    writer: Writer | None
    seconds_left: float


#: Is called with each answer, after the reader has it. What it raises is logged.
Listener: TypeAlias = Callable[[AnswerGiven], object]


class RecordsFault(ChapterVerseError):
    """The database of conversations can't be reached or used. Answers don't depend on it."""


class KeptConversations(Protocol):
    """The conversations that a database keeps. If it fails, questions are answered without it."""

    @property
    def works(self) -> bool:
        """Whether the database did not fail recently."""
        ...

    @property
    def degraded(self) -> str | None:
        """The reader's message while the database fails; None while it works."""
        ...

    def continue_conversation(self, thread_id: str, query: ChatQuery, signer: Signer) -> Conversation:
        """Return the messages that a query sends, with what is kept of its thread."""
        ...

    def keep(self, answer: AnswerGiven) -> None:
        """Store a turn. A failure of the database is logged."""
        ...

    def rate(self, rating: Feedback) -> None:
        """Store a reader's rating. Raises `RecordsFault`."""
        ...

    def forget(self, thread_id: str) -> bool:
        """Remove a thread; return whether there was one. Raises `RecordsFault`."""
        ...


def measure(answer: AnswerGiven) -> None:
    """Add an answer's metrics to those of its request."""
    stages = {f"{stage.title()}Latency": answer.stages[stage] for stage in _MEASURED_STAGES if stage in answer.stages}
    log.measure(
        Questions=1,
        NotInDocs=int(answer.response.status == "not_in_docs"),
        Degraded=int(answer.is_degraded),
        **{name: round(seconds * 1000, 3) for name, seconds in {"Latency": answer.seconds, **stages}.items()},
    )


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
