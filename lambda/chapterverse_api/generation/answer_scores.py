"""Scores which sentence, item, entry, row or block of code of the passages answers a question, without a model.

A score is linear in the features below. The weights in `answer_scores.json` are fitted by `benchmarks/quoting.py
--train` to questions of readers with the part that answers: a softmax over all parts of a question's passages. So only
differences within one question say anything: a part with a score lower by 1 is e times less likely to be the answer.

Shares of the question's words are weighted by idf.

    sentence, with_path   share in the part, and in the part and its headings together
    best                  the former, over the largest of all parts
    block                 share in the part's block, with the headings
    lead                  share in how the part begins, where a term, an option or a subject stands
    near                  most words of the question within eight words of the part
    rare                  like `best`, where a word counts more if fewer parts of the section hold it
    first, evidence       whether the passage ranks first, and how sure the search is of it
    chunk                 the part is in the chunk that the search found, and not around it
    after                 follows the section's part that holds most of the question
    code, short           the part is code; it holds fewer than four words

Twice as many features (place in the section, headings, names, words that answer to a kind of question) found no more on
five sites, each by the weights of the others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import log
from typing import NamedTuple

from chapterverse.text import lexical
from chapterverse_api.generation.blocks import Block, read
from chapterverse_api.generation.types import GenerationRequest, Passage

#: Passages that are read; those further down hardly ever answer.
PASSAGES = 5
#: The beginning of a part, in characters, where its term, option or subject stands.
_LEAD = 48
#: Words among which those of the question are near each other.
_NEAR = 8
#: Parts of one section that are read: more are a reference, in which its first parts and the found chunk count.
_PARTS = 400


class Features(NamedTuple):
    """See the module's docstring. All are from 0 to about 1."""

    sentence: float
    with_path: float
    best: float
    block: float
    lead: float
    near: float
    rare: float
    first: float
    evidence: float
    chunk: float
    after: float
    code: float
    short: float


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A passage's section, read."""

    passage: Passage
    text: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """A part of a section with its score.

    Attributes:
        block, part: its place; a block of code is one part.
    """

    section: Section
    block: int
    part: int
    features: Features
    score: float

    @property
    def place(self) -> tuple[str, int]:
        """Return its section and block."""
        return self.section.passage.id, self.block

    @property
    def span(self) -> tuple[int, int]:
        return _span(self.section.blocks[self.block], self.part)

    @property
    def text(self) -> str:
        return self.section.text[slice(*self.span)]


def score(task: GenerationRequest) -> list[ScoredPart]:
    """Return the parts of the passages in order, with their scores."""
    scored = []
    for part, features in _features(task):
        value = sum(w * x for w, x in zip(weights(), features, strict=True))
        scored.append(ScoredPart(part.section, part.block, part.part, features, value))
    return scored


class Asked:
    """The words of a question, to look up in texts."""

    def __init__(self, task: GenerationRequest) -> None:
        self._language = task.language
        self._weights: list[float] = []
        self._places: dict[int, list[int]] = {}
        for word, weight in zip(task.words.words, task.words.weights, strict=True):
            # The whole of an identifier counts as much as all of its parts: `option_7` is not `option_8`.
            parts = max(len(alternative) for alternative in word) - 1
            shares = [1.0] if parts < 1 else [0.5, *[0.5 / parts] * parts]
            for n, share in enumerate(shares):
                for term in {alternative[n] for alternative in word if n < len(alternative)}:
                    self._places.setdefault(term, []).append(len(self._weights))
                self._weights.append(weight * share)
        self._total = sum(self._weights) or 1.0

    def read(self, text: str) -> tuple[frozenset[int], list[bool]]:
        """Return the places of the question's words, or of their parts, that a text holds, and which of its own words
        hold one.
        """
        held: set[int] = set()
        hits = []
        for word in lexical.words(text, self._language):
            places = [i for term in word.terms for i in self._places.get(term, ())]
            held.update(places)
            hits.append(bool(places))
        return frozenset(held), hits

    def share(self, held: frozenset[int]) -> float:
        """Return the share of the question that these of its words are."""
        return sum(self._weights[i] for i in held) / self._total

    def rare_share(self, held: frozenset[int], counts: Counter[int], parts: int) -> float:
        """Return a share in which a word counts by how few of a section's parts hold it."""
        return sum(self._weights[i] * log(1 + parts / (1 + counts[i])) for i in held) / self._total

    def coverage(self, text: str) -> float:
        """Return the share of the question that a text holds."""
        return self.share(self.read(text)[0])


@dataclass(frozen=True, slots=True)
class _Part:
    section: Section
    passage: int
    block: int
    part: int
    text: str
    held: frozenset[int]
    hits: Sequence[bool]


def _span(block: Block, part: int) -> tuple[int, int]:
    return (block.start, block.end) if block.kind == "code" else (block.parts[part].start, block.parts[part].end)


def _within(text: str, selection: str) -> bool:
    """Whether a selection holds a part, whatever its white space."""
    return bool(selection) and " ".join(text.split()) in selection


def _parts(section: Section, passage: int, asked: Asked, selection: str) -> Iterator[_Part]:
    left = _PARTS
    for at, block in enumerate(section.blocks):
        parts = range(1 if block.kind == "code" else len(block.parts))
        # A label says nothing without what it stands over.
        for part in parts[: 0 if block.label else left]:
            text = section.text[slice(*_span(block, part))]
            # A heading's own words answer nothing.
            if text.strip("#*_ \n") not in ("", *section.passage.path) and not _within(text, selection):
                yield _Part(section, passage, at, part, text, *asked.read(text))
                left -= 1


def _features(task: GenerationRequest) -> Iterator[tuple[_Part, Features]]:
    asked, selection = Asked(task), " ".join(task.selection.split())
    sections = [Section(p, p.section, read(p.section)) for p in task.passages[:PASSAGES]]
    by_section = [list(_parts(section, n, asked, selection)) for n, section in enumerate(sections)]
    best = max((asked.share(part.held) for parts in by_section for part in parts), default=0.0) or 1.0
    rare = [_rare(asked, parts) for parts in by_section]
    rarest = max((value for values in rare for value in values), default=0.0) or 1.0
    for section, parts, rarities in zip(sections, by_section, rare, strict=True):
        path, _ = asked.read(" ".join(section.passage.path))
        of_block: dict[int, frozenset[int]] = {}
        for part in parts:
            of_block[part.block] = of_block.get(part.block, path) | part.held
        most = max(range(len(parts)), key=lambda i: asked.share(parts[i].held), default=0)
        for i, (part, rarity) in enumerate(zip(parts, rarities, strict=True)):
            lead, _ = asked.read(part.text[:_LEAD].rpartition(" ")[0] or part.text[:_LEAD])
            sentence = asked.share(part.held)
            features = Features(
                sentence=sentence,
                with_path=asked.share(part.held | path),
                best=sentence / best,
                block=asked.share(of_block[part.block]),
                lead=asked.share(lead),
                near=_near(part.hits),
                rare=rarity / rarest,
                first=float(part.passage == 0),
                evidence=section.passage.score,
                chunk=float(part.text[:200] in section.passage.text),
                after=float(0 < i - most <= 2),
                code=float(section.blocks[part.block].kind == "code"),
                short=float(len(part.hits) < 4),
            )
            yield part, features


def _rare(asked: Asked, parts: Sequence[_Part]) -> list[float]:
    """Return for each part of a section the share in which rare words of the section count more."""
    counts = Counter(i for part in parts for i in part.held)
    return [asked.rare_share(part.held, counts, len(parts)) for part in parts]


def _near(hits: Sequence[bool]) -> float:
    count = most = 0
    for i, hit in enumerate(hits):
        count += hit - (hits[i - _NEAR] if i >= _NEAR else 0)
        most = max(most, count)
    return most / 4


@cache
def weights() -> tuple[float, ...]:
    text = files("chapterverse_api.generation").joinpath("answer_scores.json").read_text(encoding="utf-8")
    values: Mapping[str, float] = json.loads(text)
    return tuple(values[name] for name in Features._fields)
