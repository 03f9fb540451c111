"""Nuggets: facts that a right answer must contain, as a question file states them.

    "nuggets": ["8765", ["port", "--port"], "/local ?host/"]

Each is a text, a list of alternative texts, or a regular expression between slashes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

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
        ValueError: they are invalid; the message continues a sentence about the row.
    """
    if not isinstance(value, list):
        raise ValueError('"nuggets" must be a list.')
    return tuple(Nugget(tuple(map(_pattern, one if isinstance(one, list) and one else [one]))) for one in value)


def _pattern(text: Any) -> re.Pattern[str]:
    if not isinstance(text, str) or not text.strip(" /"):
        raise ValueError('each of "nuggets" must be a text or a list of texts, and none may be empty.')
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        try:
            return re.compile(text[1:-1], re.IGNORECASE)
        except (re.error, RecursionError, OverflowError):
            raise ValueError(f"the nugget {text!r} is no regular expression.") from None
    # Allow line breaks between words; "80" must not match in "8080".
    words = r"\s+".join(map(re.escape, _MARKS.sub("", text).split()))
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
