"""Scores which sentence, item, entry, row or block of code of the passages answers a question, without a model.

A score is linear in the features below. The weights in `answer_scores.json` are fitted by `benchmarks/quoting.py
--train` to questions of readers with the part that answers: a softmax over all parts of a question's passages. So only
differences within one question say anything: a part with a score lower by 1 is e times less likely to be the answer.

Shares of the question's words are weighted by idf.

    sentence, with_path            share in the part, and in the part and its headings together
    best                           the former, over the largest of all parts
    block, around                  share in the part's block, and with the blocks beside it; with the headings
    names, lead                    share of the question's names in the part, and share of its words in how it begins
    lead_precision                 share of the beginning's words that are the question's
    near                           most words of the question within eight words of the part
    rare                           like `best`, where a word counts more if fewer parts of the section hold it
    first, second, rank, evidence  place and strength of the passage among the passages
    chunk                          the part is in the chunk that the search found, and not around it
    heading                        share of the heading's words that are the question's
    heading_first                  the same for the section's first part
    order, opens, opening          place of the block in the section; the part begins its block, or the section
    after                          follows the section's part that holds most of the question
    code, item                     kind of the part
    introduces                     ends before code, a list or a table
    steps                          the same or code, where the question asks how to do something
    short                          holds fewer than four words
    cue, any_cue                   a word that answers to this kind of question have, by `answer_cues.json`, or to any
"""

from __future__ import annotations

import json
import re
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
    around: float
    names: float
    lead: float
    lead_precision: float
    near: float
    rare: float
    first: float
    second: float
    rank: float
    evidence: float
    chunk: float
    heading: float
    heading_first: float
    order: float
    opens: float
    opening: float
    after: float
    code: float
    item: float
    introduces: float
    steps: float
    short: float
    cue: float
    any_cue: float


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
        held: the places of the question's words that it holds.
    """

    section: Section
    block: int
    part: int
    held: frozenset[int]
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
        scored.append(ScoredPart(part.section, part.block, part.part, part.held, features, value))
    return scored


class Asked:
    """The words of a question, to look up in texts."""

    def __init__(self, task: GenerationRequest) -> None:
        self._language = task.language
        self._weights: list[float] = []
        self._places: dict[int, list[int]] = {}
        names: set[int] = set()
        for word, weight in zip(task.words.words, task.words.weights, strict=True):
            # The whole of an identifier counts as much as all of its parts: `option_7` is not `option_8`.
            parts = max(len(alternative) for alternative in word) - 1
            shares = [1.0] if parts < 1 else [0.5, *[0.5 / parts] * parts]
            for n, share in enumerate(shares):
                for term in {alternative[n] for alternative in word if n < len(alternative)}:
                    self._places.setdefault(term, []).append(len(self._weights))
                if word in task.words.names:
                    names.add(len(self._weights))
                self._weights.append(weight * share)
        self._total = sum(self._weights) or 1.0
        self.names = frozenset(names)

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
    asked, cue, any_cue = Asked(task), _cues(task.frame, task.language), _cues("", task.language)
    read_sections = [Section(p, p.section, read(p.section)) for p in task.passages[:PASSAGES]]
    selection = " ".join(task.selection.split())
    by_section = [list(_parts(section, n, asked, selection)) for n, section in enumerate(read_sections)]
    every = [part for parts in by_section for part in parts]
    best = max((asked.share(part.held) for part in every), default=0.0) or 1.0
    counts = [Counter(i for part in parts for i in part.held) for parts in by_section]
    rare = [
        [asked.rare_share(p.held, n, len(parts)) for p in parts] for parts, n in zip(by_section, counts, strict=True)
    ]
    rarest = max((value for values in rare for value in values), default=0.0) or 1.0
    top = max((p.rank for p in task.passages), default=0.0) or 1.0
    names = asked.share(asked.names) or 1.0
    nothing: frozenset[int] = frozenset()
    for n, (section, parts) in enumerate(zip(read_sections, by_section, strict=True)):
        passage, blocks = section.passage, section.blocks
        path, _ = asked.read(" ".join(passage.path))
        _, heading = asked.read(passage.path[-1] if passage.path else "")
        precision = _mean(heading)
        of_block: dict[int, frozenset[int]] = {}
        for part in parts:
            of_block[part.block] = of_block.get(part.block, path) | part.held
        most = max(range(len(parts)), key=lambda i: asked.share(parts[i].held), default=0)
        for i, part in enumerate(parts):
            block = blocks[part.block]
            following = blocks[part.block + 1] if part.block + 1 < len(blocks) else None
            introduces = block.kind == "paragraph" and part.part == len(block.parts) - 1
            introduces = introduces and following is not None and following.kind != "paragraph"
            around = of_block[part.block].union(*(of_block.get(b, nothing) for b in (part.block - 1, part.block + 1)))
            lead, lead_hits = asked.read(part.text[:_LEAD].rpartition(" ")[0] or part.text[:_LEAD])
            sentence, is_first, code = asked.share(part.held), part.block == part.part == 0, block.kind == "code"
            yield (
                part,
                Features(
                    sentence=sentence,
                    with_path=asked.share(part.held | path),
                    best=sentence / best,
                    block=asked.share(of_block[part.block]),
                    around=asked.share(around),
                    names=asked.share(part.held & asked.names) / names,
                    lead=asked.share(lead),
                    lead_precision=_mean(lead_hits),
                    near=_near(part.hits),
                    rare=rare[n][i] / rarest,
                    first=float(n == 0),
                    second=float(n <= 1),
                    rank=passage.rank / top,
                    evidence=passage.score,
                    chunk=float(part.text[:200] in passage.text),
                    heading=precision,
                    heading_first=precision * is_first,
                    order=1 / (1 + part.block),
                    opens=float(part.part == 0),
                    opening=float(part.block == 0),
                    after=float(0 < i - most <= 2),
                    code=float(code),
                    item=float(block.kind == "list"),
                    introduces=float(introduces),
                    steps=float(task.frame == "how_to" and (introduces or code)),
                    short=float(len(part.hits) < 4),
                    cue=float(cue is not None and cue.search(part.text) is not None),
                    any_cue=float(any_cue is not None and any_cue.search(part.text) is not None),
                ),
            )


def _mean(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0


def _near(hits: Sequence[bool]) -> float:
    count = most = 0
    for i, hit in enumerate(hits):
        count += hit - (hits[i - _NEAR] if i >= _NEAR else 0)
        most = max(most, count)
    return most / 4


@cache
def _cues(frame: str, language: str) -> re.Pattern[str] | None:
    text = files("chapterverse_api.generation").joinpath("answer_cues.json").read_text(encoding="utf-8")
    data: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(text)
    words = data.get(frame, {}).get(language.partition("-")[0].lower(), ())
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE) if words else None


@cache
def weights() -> tuple[float, ...]:
    text = files("chapterverse_api.generation").joinpath("answer_scores.json").read_text(encoding="utf-8")
    values: Mapping[str, float] = json.loads(text)
    return tuple(values[name] for name in Features._fields)
