"""Finds the text that most pages of a site repeat around their own, where no element tells the two apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from chapterverse.readers.html.dom import BLOCKS
from chapterverse.readers.html.visible_text import collapse, unescape

#: Fewer pages show no habit of a site; the share of the pages that repeat a text.
_LEAST_PAGES, _LEAST_SHARE = 5, 0.8
#: Pieces at the beginning and at the end of a page that are compared.
_MAX_FIRST, _MAX_LAST = 400, 100
#: After so many pages, texts of fewer than a fifth of them are forgotten.
_FORGET_EVERY, _FORGET_BELOW = 1000, 0.2

# What is never text of a page, the tags of blocks, other tags, text.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|svg|nav|template|noscript)(?=[\s/>]).*?(?:</\1[^>]*+>|\Z)"
    r"|</?([a-z][a-z0-9-]*+)[^>]*+>?|<|[^<]++",
    re.DOTALL | re.IGNORECASE,
)
_END_TAGS = re.compile(r"(?>(?:\s++|</[^<>]*+>|<!--.*?(?:-->|\Z))*)", re.DOTALL)


class Piece(NamedTuple):
    """A text between the tags of blocks, and its place, in characters."""

    text: str
    start: int
    end: int


class RepeatedText:
    """Counts the texts at both ends of pages; `note` each page, then ask what is `around` each page's own."""

    def __init__(self) -> None:
        self.pages = 0
        self._texts: Counter[int] = Counter()

    def note(self, html: str) -> None:
        """Count a page."""
        self.pages += 1
        pieces = list(_pieces(html))
        self._texts.update({hash(piece.text) for piece in (*pieces[:_MAX_FIRST], *pieces[-_MAX_LAST:])})
        if not self.pages % _FORGET_EVERY:
            least = self.pages * _FORGET_BELOW
            self._texts = Counter({text: count for text, count in self._texts.items() if count >= least})

    def around(self, html: str) -> tuple[int, int]:
        """Return how many characters at the beginning and at the end of a page aren't its own; none if nothing is."""
        pieces = list(_pieces(html)) if self.pages >= _LEAST_PAGES else []
        mine = [i for i, piece in enumerate(pieces) if not self._is_repeated(piece)]
        if not mine:
            return 0, 0
        first, last = mine[0], mine[-1]
        before = _behind(html, pieces[first - 1].end) if first else 0
        return before, 0 if last == len(pieces) - 1 else len(html) - _behind(html, pieces[last].end)

    def _is_repeated(self, piece: Piece) -> bool:
        return self._texts[hash(piece.text)] >= self.pages * _LEAST_SHARE


def _pieces(html: str) -> Iterator[Piece]:
    parts: list[str] = []
    start = end = 0
    for token in _TOKEN.finditer(html):
        name = token[2]
        if name is None and not token[0].startswith("<"):
            if not token[0].isspace():
                start = start if parts else token.start()
                end = token.end()
            if parts or not token[0].isspace():
                parts.append(token[0])
        elif parts and name is not None and name.lower() in BLOCKS:
            yield Piece(collapse(unescape("".join(parts))), start, end)
            parts = []
    if parts:
        yield Piece(collapse(unescape("".join(parts))), start, end)


def _behind(html: str, position: int) -> int:
    """Return the position of the first start tag or text from `position` on."""
    match = _END_TAGS.match(html, position)
    return match.end() if match else position
