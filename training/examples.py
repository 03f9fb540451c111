"""Reads the training data: questions and claims about sections of public documentation, by a language model.

The data are a folder with `chunks.jsonl.xz` (`site`, `path`, `text`) and `rows.jsonl.xz`:

    k      Q a question that a passage answers, N one that it only seems to, T a true claim about it, F a false one
    q      the question or the claim
    pos    the line number of the chunk that answers
    parts  the places of the answering parts in that chunk
    own    the chunks of its section
    top    the best twenty of a search by words
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from chapterverse.reading.encoding import EncodedPassage, PairEncoder, WordPiece, readable

#: Sites whose questions no weight is trained on: two to choose settings with, two to report.
TUNED_SITES = frozenset(("helm", "textual"))
HELD_SITES = frozenset(("gitea", "jest"))

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ROW, _RULE = re.compile(r"\s*\|"), re.compile(r"[\s|:\-]+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"(\[*])")
_MAX_CODE_CHARS = 600


@dataclass
class Chunk:
    """A passage of the data."""

    path: list[str]
    text: str

    @cached_property
    def parts(self) -> list[str]:
        return list(split_parts(self.text))


@dataclass
class Corpus:
    """All chunks, and the rows of each kind."""

    chunks: list[Chunk]
    chunks_by_site: dict[str, list[int]]
    rows: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Corpus:
        chunks, by_site = [], dict[str, list[int]]()
        with lzma.open(folder / "chunks.jsonl.xz", "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                chunk = json.loads(line)
                chunks.append(Chunk(chunk["path"], chunk["text"]))
                by_site.setdefault(chunk["site"], []).append(number)
        with lzma.open(folder / "rows.jsonl.xz", "rt", encoding="utf-8") as lines:
            return cls(chunks, by_site, [json.loads(line) for line in lines])

    def of(self, kinds: str, *, sites: frozenset[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of these kinds: of these sites, or else of all that are trained on."""
        kept_out = TUNED_SITES | HELD_SITES
        chosen = (r for r in self.rows if r["k"] in kinds)
        return [r for r in chosen if (r["site"] in sites if sites is not None else r["site"] not in kept_out)]


class Encoded:
    """The chunks of a corpus as tokens; each is encoded when it is first needed."""

    def __init__(self, corpus: Corpus, encoder: PairEncoder) -> None:
        self._corpus, self._encoder = corpus, encoder
        self._passages: dict[int, EncodedPassage] = {}

    def passage(self, number: int) -> EncodedPassage:
        if number not in self._passages:
            chunk = self._corpus.chunks[number]
            self._passages[number] = self._encoder.passage(chunk.path, chunk.parts)
        return self._passages[number]


def read_vocabulary(base: Path) -> list[str]:
    """Return the tokens of the base weights, in the order of their numbers."""
    numbers = json.loads((base / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return sorted(numbers, key=numbers.__getitem__)


def open_encoder(base: Path) -> PairEncoder:
    return PairEncoder(WordPiece(read_vocabulary(base)))


def split_parts(text: str) -> Iterator[str]:
    """Yield the sentences, items, rows and blocks of code of a chunk, as the rows of the data number them."""
    lines, at, prose = text.split("\n"), 0, list[str]()

    def sentences() -> Iterator[str]:
        whole = " ".join(readable(" ".join(prose)).split(" ")).strip()
        prose.clear()
        yield from (one.strip() for one in _SENTENCE_END.split(re.sub(r"[ \t]+", " ", whole)))

    def pieces() -> Iterator[str]:
        nonlocal at
        while at < len(lines):
            line = lines[at]
            at += 1
            if fence := _FENCE.match(line):
                yield from sentences()
                start = at
                while at < len(lines) and not lines[at].lstrip().startswith(fence.group(1)[:3]):
                    at += 1
                yield "\n".join(lines[start:at])[:_MAX_CODE_CHARS]
                at += 1
            elif _ROW.match(line):
                yield from sentences()
                if not _RULE.fullmatch(line):
                    yield re.sub(r"[ \t]+", " ", readable(line)).strip()
            elif not line.strip() or _ITEM.match(line):
                yield from sentences()
                if line.strip():
                    prose.append(_ITEM.sub("- ", line, count=1))
            else:
                prose.append(line.strip())
        yield from sentences()

    return (piece for piece in pieces() if len(piece) > 1)
