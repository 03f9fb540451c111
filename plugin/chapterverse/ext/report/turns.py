"""A question with its answer, as the kept conversations and the lines of the log tell it.

Lines are read one at a time: a log may be larger than memory.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from chapterverse.errors import InputError
from chapterverse.extensions import load
from chapterverse.progress import Progress
from chapterverse.settings import Settings
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
#: A longer line is none of ours: a question has 4,000 characters.
_MAX_LINE_BYTES = 1 << 18
_MAX_SECTIONS = 5
_MAX_ID_CHARS = 64
_LINES_PER_REPORT = 20_000
_STDIN = "-"
_EVENTS = frozenset({"query_received", "response_sent", "feedback_received"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


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

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take what one event says, and return whether this release knows all of it."""
        if event["event"] == "feedback_received":
            # A reader may change a rating: the last one counts.
            self.is_rated_down = event.get("rating") == "down"
            return event.get("rating") in ("up", "down")
        question, thread, at = event.get("question"), event.get("thread_id"), event.get("time")
        if event["event"] == "query_received" and isinstance(question, str) and question.strip():
            self.question = question
        if isinstance(thread, str):
            self.thread = thread[:_MAX_ID_CHARS]
        if not isinstance(at, str) or not _is_time(at):
            return False
        self.at = min(self.at or at, at)
        return event["event"] == "query_received" or self._take_answer(event)

    def _take_answer(self, event: Mapping[str, Any]) -> bool:
        self.status = STATUSES.get(str(event.get("status")))
        if isinstance(sections := event.get("sections"), list):
            # The same object for all turns.
            self.sections = tuple(sys.intern(s) for s in sections[:_MAX_SECTIONS] if isinstance(s, str))
        return self.status is not None


def read_records(settings: Settings) -> list[AskedTurn]:
    """Return the turns that `settings.records` names, with their ratings; none of what is forgotten or expired.

    Raises:
        ConfigurationError: it names no database.
        RecordsFault: the database can't be reached or used.
    """
    records = load("chapterverse_api.ext.conversations.records:open_records")(settings)
    return [
        AskedTurn(
            turn.turn_id,
            thread=thread,
            at=at,
            question=turn.question,
            status=STATUSES.get(turn.status),
            sections=tuple(place.url for place in turn.cited),
            is_rated_down=rating == "down",
        )
        for thread, at, turn, rating in (records.turns() if records else ())
    ]


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


@dataclass(slots=True)
class LogReading:
    """What a log tells.

    Attributes:
        turns: by id, in the order of their first lines.
        lines: the number of lines that are not empty.
        foreign: of these the lines that are no event, because they are cut or another program's.
        unknown: the events with a status or a time that this release doesn't know.
    """

    turns: dict[str, AskedTurn] = field(default_factory=dict)
    lines: int = 0
    foreign: int = 0
    unknown: int = 0

    @property
    def notes(self) -> list[str]:
        """What was not read, a sentence each."""
        sentences = [
            (self.foreign, f"{self.foreign} of {self.lines} lines of the log are cut, or another program's."),
            (self.unknown, f"{self.unknown} lines of the log say what this release doesn't know."),
        ]
        return [sentence for count, sentence in sentences if count]

    def take(self, line: bytes) -> None:
        """Take what one line says."""
        text = line.strip()
        if not text:
            return
        self.lines += 1
        event = _parse(text)
        if event is None:
            self.foreign += 1
        elif event["event"] in _EVENTS:
            name = event.get("turn_id")
            turn_id = name[:_MAX_ID_CHARS] if isinstance(name, str) else ""
            self.unknown += not (turn_id and self.turns.setdefault(turn_id, AskedTurn(turn_id)).take(event))


def read_log(files: Iterable[str], progress: Progress) -> LogReading:
    """Return what these files tell; `-` is standard input.

    Raises:
        InputError: a file can't be read.
    """
    reading = LogReading()
    for name in files:
        with _open(name) as (file, size):
            done = 0
            for number, line in enumerate(_lines(file), 1):
                reading.take(line)
                done += len(line)
                if number % _LINES_PER_REPORT == 0:
                    progress("Reading the log", min(done, size), size)
            progress("Reading the log", size, size)
    return reading


@contextmanager
def _open(name: str) -> Iterator[tuple[BinaryIO, int]]:
    if name == _STDIN:
        yield sys.stdin.buffer, 0
        return
    try:
        with Path(name).open("rb") as file:
            yield file, Path(name).stat().st_size
    except OSError as error:
        raise InputError(f"The log {name} can't be read: {error.strerror}.") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield each line, of one too long only its beginning."""
    while line := file.readline(_MAX_LINE_BYTES):
        yield line
        while not line.endswith(b"\n") and len(line) == _MAX_LINE_BYTES:
            line = file.readline(_MAX_LINE_BYTES)


def _parse(text: bytes) -> dict[str, Any] | None:
    """Return the event of a line, which may begin with a time, as AWS's export writes it; None if it has none."""
    try:
        event = json.loads(text[max(0, text.find(b"{")) :])
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _is_time(text: str) -> bool:
    try:
        return bool(_TIME.match(text) and date.fromisoformat(text[:10]))
    except ValueError:
        return False
