"""Files of questions as JSON lines: `{"id", "question"}`, with a `history` for a follow-up; other keys are free."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chapterverse.errors import InputError


@dataclass(frozen=True, slots=True)
class Asked:
    """One question.

    Attributes:
        history: messages before it, as in `ChatQuery.conversation_history`; unchecked.
        place: where it was read, for an error to name.
    """

    id: str
    question: str
    history: Any = None
    place: str = ""


def read_questions(file: Path) -> list[Asked]:
    """Return the rows of a file in order; empty lines are skipped.

    Raises:
        InputError: it can't be read, holds no question, or a row is not what it should be; the message names its line.
    """
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read as UTF-8 text ({type(error).__name__}).") from None
    rows = [_row(line, f"{file}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"{file} holds no question.")
    return rows


def _row(line: str, place: str) -> Asked:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{place}: this is not JSON.") from None
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not isinstance(row.get("id"), str):
        raise InputError(f'{place}: a row needs "id" and "question", both strings.')
    return Asked(row["id"], row["question"], row.get("history"), place)
