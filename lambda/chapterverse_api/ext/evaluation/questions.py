"""Reads question files: JSON lines of `{"id", "question"}`, with a `history` for a follow-up. Other keys are ignored.

What `chapterverse report --json` prints is one too: the questions that it shows, which state no answer.

A judged question also states its answer: `expected`, a list of addresses of pages or sections (`url#anchor`), or
`"answerable": false` if the documentation holds no answer. `key` is the sentence, item, row or line of code that
answers, `begins` the beginning of its block (see `quoting`). In place of `expected` a row may name the `file` and the
`heading` that answer. With a `key` that is null the documentation holds no answer. `nuggets` are facts that the answer
must contain, each a text, a list of alternative texts, or a regular expression between slashes:

    "nuggets": ["8765", ["port", "--port"], "/local ?host/"]
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chapterverse.errors import InputError
from chapterverse.text.json_text import SURROGATE, parse_json
from chapterverse_api.ext.evaluation.quoting import AnswerKey

#: Markdown emphasis and code marks.
_MARKS = re.compile(r"\*\*|`")


@dataclass(frozen=True, slots=True)
class Nugget:
    """One fact.

    Attributes:
        alternatives: patterns of which any is enough.
    """

    alternatives: tuple[re.Pattern[str], ...]

    def stands_in(self, text: str) -> bool:
        """Whether an answer in Markdown contains it, ignoring case."""
        bare = _MARKS.sub("", text)
        return any(pattern.search(bare) for pattern in self.alternatives)


def read_nuggets(value: Any) -> tuple[Nugget, ...]:
    """Return the nuggets of a row.

    Raises:
        InputError: they are invalid; the message continues a sentence about the row.
    """
    if not isinstance(value, list):
        raise InputError('"nuggets" must be a list.')
    return tuple(Nugget(tuple(map(_pattern, one if isinstance(one, list) and one else [one]))) for one in value)


def _pattern(text: Any) -> re.Pattern[str]:
    if not isinstance(text, str) or not text.strip(" /"):
        raise InputError('each of "nuggets" must be a text or a list of texts, and none may be empty.')
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        try:
            return re.compile(text[1:-1], re.IGNORECASE)
        except (re.error, RecursionError, OverflowError):
            raise InputError(f"the nugget {text!r} is no regular expression.") from None
    # Allow line breaks between words; "80" must not match in "8080".
    words = r"\s+".join(map(re.escape, _MARKS.sub("", text).split()))
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question. Only `read_judged` reads the fields after `place`.

    Attributes:
        history: the messages before the question, as in `ChatQuery.conversation_history`; unchecked.
        place: the file and the line, for error messages.
        expected: the distinct addresses of the answer, as written.
        answerable: whether the documentation answers the question.
        nuggets: the facts of the answer.
        key: the words that answer, None if the row does not state them.
        file, heading: the source of the answer, if the row states no address.
    """

    id: str
    question: str
    history: Any = None
    place: str = ""
    expected: tuple[str, ...] = ()
    answerable: bool = True
    nuggets: tuple[Nugget, ...] = ()
    key: AnswerKey | None = None
    file: str = ""
    heading: str | None = None

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Begin the message of an invalid question with its place."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.place}: {error}") from None


def read_questions(file: Path) -> list[QuestionRow]:
    """Return the rows of a file in order, without empty lines.

    Raises:
        InputError: the file can't be read, holds no question, or has an invalid row; the message names its line.
    """
    return [question for question, _ in _parse_file(file)]


def read_judged(file: Path) -> list[QuestionRow]:
    """Return the rows of a file in order, with the expectations of each.

    Raises:
        InputError: as `read_questions`, or a row doesn't state its answer, or two rows have one id.
    """
    judged: dict[str, QuestionRow] = {}
    for question, row in _parse_file(file):
        with question.named():
            if known := judged.get(question.id):
                raise InputError(f"the id {question.id!r} is taken already, by {known.place}.")
            judged[question.id] = _read_judgement(question, row)
    return list(judged.values())


def _parse_file(file: Path) -> list[tuple[QuestionRow, dict[str, Any]]]:
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{file} can't be read ({error.strerror}): name a file of questions.") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is no text in UTF-8: save it as such.") from None
    asked = _reported_questions(text)
    if asked is not None:
        found = ((f"{file}: {text!r}", json.dumps({"id": text, "question": text})) for text in asked)
    else:
        found = ((f"{file}, line {number}", line) for number, line in enumerate(text.split("\n"), 1))
    rows = [_parse_row(line, place) for place, line in found if line.strip()]
    if not rows:
        raise InputError(f"{file} holds no question.")
    return rows


def _reported_questions(text: str) -> list[str] | None:
    """Return the distinct questions of a report's JSON; None if the text is none."""
    try:
        document = parse_json(text)
        shown = [question for group in document["groups"] for question in group["examples"]]
    except (ValueError, TypeError, KeyError):
        return None
    return list(dict.fromkeys(map(str, shown)))


def _parse_row(line: str, place: str) -> tuple[QuestionRow, dict[str, Any]]:
    question = QuestionRow("", "", place=place)
    with question.named():
        try:
            row = parse_json(line)
        except ValueError:
            raise InputError("this is not JSON.") from None
        if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not isinstance(row.get("id"), str):
            raise InputError('a row needs "id" and "question", both strings.')
        _check_unicode(row["id"], row["question"])
    history = row.get("history")
    if isinstance(history, list):
        # Earlier questions alone are enough.
        history = [{"role": "user", "content": turn} if isinstance(turn, str) else turn for turn in history]
    return replace(question, id=row["id"], question=row["question"], history=history), row


def _read_judgement(question: QuestionRow, row: dict[str, Any]) -> QuestionRow:
    expected, answerable = row.get("expected", []), row.get("answerable", "key" not in row or row["key"] is not None)
    texts = {name: row.get(name) for name in ("key", "begins", "file", "heading")}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise InputError(f'"{name}" must be a string.')
    if not isinstance(expected, list) or not all(isinstance(a, str) and a.strip() for a in expected):
        raise InputError('"expected" must be a list of addresses.')
    if not isinstance(answerable, bool):
        raise InputError('"answerable" must be true or false.')
    if answerable and not expected and not texts["file"]:
        raise InputError('a row needs an address in "expected", or "answerable": false.')
    nuggets = read_nuggets(row.get("nuggets", []))
    for name, values in (("expected", expected), ("nuggets", nuggets)):
        if values and not answerable:
            raise InputError(f'a row that is not answerable has nothing in "{name}".')
    _check_unicode(*filter(None, texts.values()), *expected)
    return replace(
        question,
        expected=tuple(dict.fromkeys(address.strip() for address in expected)),
        answerable=answerable,
        nuggets=nuggets,
        key=AnswerKey(texts["key"], texts["begins"] or "") if texts["key"] else None,
        file=texts["file"] or "",
        heading=texts["heading"],
    )


def _check_unicode(*texts: str) -> None:
    # It can be neither printed nor sent.
    if any(map(SURROGATE.search, texts)):
        raise InputError("this is not valid Unicode.")
