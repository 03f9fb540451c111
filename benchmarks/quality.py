"""Measures a chunker's output for a page: Markdown blocks that are whole in no chunk, and chunks without their heading.

The same rules judge ours and the peers', by letters and digits only. Link targets, tags and attributes don't count,
because chunkers may write tables and links differently.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from peers import Piece

from chapterverse.model import MAX_CHUNK_TOKENS
from chapterverse.text import tokens

#: Larger blocks, in tokens, don't fit beside a heading path.
_KEEPABLE = 480

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})[^\n`]*\n(.*?)\n\1\2[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\|.*\n\|[ :|-]+\|[ \t]*\n(?:\|.*(?:\n|\Z))+", re.MULTILINE)
_INDENTED = re.compile(r"^(?:!!!|\?\?\?\+?) .*\n((?:[ \t]*\n| {4}.*(?:\n|\Z))+)", re.MULTILINE)
_COLONS = re.compile(r"^(:::+)[ \t]*\w.*\n(.*?)\n\1[ \t]*$", re.MULTILINE | re.DOTALL)
_JSX = re.compile(r"^<([A-Z]\w*)[^\n]*>[ \t]*\n(.*?)\n</\1>[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_NOISE = re.compile(
    r"(?m:^[ \t]*(?:`{3,}|~{3,}).*$)"  # a fence's language and title
    r"|\]\([^)\s]*(?:\s[^)]*)?\)|</?[A-Za-z][^>\n]*>|\{[^{}\n]*\}|&\w+;|!!! \w+|\?\?\?\+? \w+"
)
#: Letters that locate a chunk on its page.
_WINDOW = 60
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


@dataclass(slots=True)
class Quality:
    """Counts over pages: `kept` and `cut` by kind of block, without blocks that a chunker rewrote."""

    kept: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    over: int = 0
    placed: int = 0
    lost: int = 0

    def add(self, source: str, pieces: Sequence[Piece]) -> None:
        """Count one page of Markdown and its chunks."""
        inks = [_ink(piece.text) for piece in pieces]
        everything = "\n".join(inks)
        for kind, block in _blocks(source):
            lines = [ink for line in block.split("\n") if (ink := _ink(line))]
            if not lines or not all(line in everything for line in lines):
                continue
            whole = any(_holds(ink, lines) for ink in inks)
            (self.kept if whole else self.cut)[kind] += 1
        self.chunks += len(pieces)
        self.over += sum(tokens.count(piece.embedded or piece.text) > MAX_CHUNK_TOKENS for piece in pieces)
        self._find_lost(source, pieces)

    def said(self, kind: str) -> str:
        """Return "N of M": cut blocks of a kind, and all."""
        total = self.kept[kind] + self.cut[kind]
        return f"{self.cut[kind]} of {total}" if total else "-"

    def _find_lost(self, source: str, pieces: Sequence[Piece]) -> None:
        parts = _parts(source)
        page = "".join(ink for _, ink in parts)
        starts = list(accumulate((len(ink) for _, ink in parts), initial=0))
        for piece in pieces:
            ink = _ink(piece.text)
            # Locate a chunk by its first letters that occur once on the page.
            windows = (ink[at : at + _WINDOW] for at in range(0, max(len(ink) - _WINDOW, 0), _WINDOW))
            at = next((page.find(window) for window in windows if page.count(window) == 1), -1)
            heading = parts[bisect(starts, at) - 1][0] if at >= 0 else ""
            if heading:
                self.placed += 1
                self.lost += heading not in _ink(f"{piece.path}\n{piece.text}")


def _blocks(source: str) -> Iterator[tuple[str, str]]:
    """Yield kind and content of the blocks that could be kept whole, without look-alikes inside fences."""
    spans = [(found.start(), found.end()) for found in _FENCE.finditer(source)]
    for kind, pattern, group in (
        ("fences", _FENCE, 3),
        ("tables", _TABLE, 0),
        ("admonitions", _INDENTED, 1),
        ("admonitions", _COLONS, 2),
        ("JSX", _JSX, 2),
    ):
        for found in pattern.finditer(source):
            inside = kind != "fences" and any(start < found.start() < end for start, end in spans)
            if not inside and tokens.fits(found.group(), _KEEPABLE):
                yield kind, found.group(group)


def _parts(source: str) -> list[tuple[str, str]]:
    """Return the page split before each heading: the heading ("" before the first) and the following letters."""
    hidden = _FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), source)
    found = [(heading.start(), _ink(heading.group(1))) for heading in _HEADING.finditer(hidden)]
    cuts = [(0, ""), *found, (len(source), "")]
    return [(heading, _ink(source[start:end])) for (start, heading), (end, _) in pairwise(cuts)]


def without_front_matter(source: str) -> str:
    return _FRONT_MATTER.sub("", source)


def _holds(ink: str, lines: Sequence[str]) -> bool:
    """Return whether one chunk has all lines in order."""
    at = 0
    for line in lines:
        position = ink.find(line, at)
        if position < 0:
            return False
        at = position + len(line)
    return True


def _ink(text: str) -> str:
    return "".join(filter(str.isalnum, _NOISE.sub("", text)))
