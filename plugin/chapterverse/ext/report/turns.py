"""A question with its answer, as the log and the kept conversations tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, TypeAlias

from chapterverse.text import lexical

TurnStatus: TypeAlias = Literal["answered", "hedged", "refused"]

#: By the `status` of a `ChatResponse`. Other releases may have others.
STATUSES: Mapping[str, TurnStatus] = {
    "answered": "answered",
    "degraded": "answered",
    "planned": "answered",
    "partial": "hedged",
    "not_in_docs": "refused",
}
#: Least share of the words of two questions in one thread that both have, if the second says the first in other words.
_AGAIN = 0.3


@dataclass(slots=True)
class AskedTurn:
    """A question with its answer.

    Attributes:
        thread: the conversation; empty if the log names none.
        at: the time of the question, ISO 8601 UTC.
        question: None if its text is not known.
        status: None if no answer is known.
        sections: the addresses of the cited sections, or of the nearest if none is cited.
        is_rated_down: whether the reader said that the answer is no good.
        is_asked_again: whether the reader's next question says the same in other words.
    """

    turn_id: str
    thread: str = ""
    at: str = ""
    question: str | None = None
    status: TurnStatus | None = None
    sections: tuple[str, ...] = ()
    is_rated_down: bool = False
    is_asked_again: bool = False

    @property
    def day(self) -> str:
        return self.at[:10]

    @property
    def reader(self) -> str:
        """Whom it counts for: its thread, or itself without one."""
        return self.thread or f"turn {self.turn_id}"

    @property
    def is_unanswered(self) -> bool:
        return self.status != "answered" or self.is_rated_down or self.is_asked_again


def count_readers(turns: Iterable[AskedTurn]) -> int:
    return len({turn.reader for turn in turns})


def normalize(question: str) -> str:
    """Return the form in which two questions are one."""
    return " ".join(question.casefold().split()).strip(" ?!.")


def mark_asked_again(turns: Iterable[AskedTurn]) -> None:
    """Mark each turn whose thread goes on with the same question in other words."""
    threaded = sorted((t for t in turns if t.thread), key=lambda t: (t.thread, t.at, t.turn_id))
    for _, thread in groupby(threaded, key=lambda turn: turn.thread):
        for turn, following in pairwise(thread):
            turn.is_asked_again = _says_the_same(turn.question or "", following.question or "")


def _says_the_same(question: str, following: str) -> bool:
    if not question or not following or normalize(question) == normalize(following):
        return False
    words, others = ({t for w in lexical.words(q) for t in w.terms[:1]} for q in (question, following))
    return bool(words & others) and len(words & others) >= _AGAIN * len(words | others)
