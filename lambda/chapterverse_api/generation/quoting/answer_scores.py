"""Scores which sentence, item, entry, row or block of code of the passages answers a question, without a model.

A score is linear in the features below. The weights in `answer_scores.json` are fitted by `benchmarks/quoting.py
--train` to questions of readers with the part that answers: a softmax over all parts of a question's passages. So only
differences within one question say anything: a part with a score lower by 1 is e times less likely to be the answer.

Shares of the question's words are weighted by idf. A synonym (`text.thesaurus`) counts like its word.

    with_path             share in the part and its headings together
    lead                  share in how the part begins, where a term, an option or a subject stands
    rare                  share in the part, where a word counts more if fewer parts of the section hold it, over the
                          largest of all parts
    distance              how far the part is from the section's part that holds most of the question, in tens of parts
    opening               share in the section's own heading, for its first three parts
    rank, relative_rank   the passage's value in the order of the search, and over the first one's
    chunk                 the part is in the chunk that the search found, and not around it
    whole, parts, depth   all of the section is here; how many parts it has; how deep its heading stands
    code, short           the part is code; it holds fewer than four words

On twelve sites, each by the weights of the others, a part that answers comes first for 184 of 608 questions, of which
the passages answer 454. A second model, which chose the mark among the parts of a quote, chose no better. All that
follows was measured before there were synonyms, on nine sites, where 28 % of all questions had an answer first. Neither
all of 64 features nor boosted trees on them put more answers first. Nor did likeness in meaning: the cosine of question
and part, heading and section by WordLlama's static vectors (256 dimensions) or by the Universal Sentence Encoder's
(512). Two models that read whole sentences were tried as one more term of the score. Neither fits into the function's
package:

    MiniLM   all-MiniLM-L6-v2, 8 bits, 23 MB, 83 ms of one core: the cosine of the question and the part under its
             headings, for the ten best parts. 31 % first; with a weight of 8, 36 questions of 500 gained and 18 lost.
             On the three reported sites .52 of the keys are quoted and not .48, .45 and not .42 in the first quote,
             .25 and not .23 marked.
    SmolLM2  135M-Instruct, 4 bits, 98 MB, about 1 s: the mean log-likelihood of the question after the part, for the
             five best. 28 % first and not 27 %, of 170 questions, and no more together with MiniLM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from typing import NamedTuple

from chapterverse.text import lexical
from chapterverse.text.json_text import load_json
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.quoting.blocks import QuotableBlock, read_blocks
from chapterverse_api.generation.requests import GenerationRequest

#: Passages that are read; those further down hardly ever answer.
PASSAGES = 5
#: The beginning of a part, in characters, where its term, option or subject stands.
_LEAD = 48
#: A part of fewer words is short.
_SHORT = 4
#: Parts of one section that are read: more are a reference, in which its first parts and the found chunk count.
_PARTS = 400
#: Parts of a section that are its opening, parts from which on distance no longer counts, and headings of a deep path.
_OPENING, _FAR, _DEEPEST = 3, 10, 6


class PartFeatures(NamedTuple):
    """See the module's docstring. All are from 0 to about 1."""

    with_path: float
    lead: float
    rare: float
    distance: float
    opening: float
    rank: float
    relative_rank: float
    chunk: float
    whole: float
    parts: float
    depth: float
    code: float
    short: float


@dataclass(frozen=True, slots=True, eq=False)
class ReadSection:
    """A passage's section, read."""

    passage: Passage
    text: str
    blocks: Sequence[QuotableBlock]


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """A part of a section with its score.

    Attributes:
        block, part: the place of the block and of the part; a block of code is one part.
    """

    section: ReadSection
    block: int
    part: int
    features: PartFeatures
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


def score(request: GenerationRequest) -> list[ScoredPart]:
    """Return the parts of the passages in order, with their scores."""
    scored = []
    for part, features in _features(request):
        value = sum(w * x for w, x in zip(weights(), features, strict=True))
        scored.append(ScoredPart(part.section, part.block, part.part, features, value))
    return scored


class QuestionWords:
    """The words of a question, to look up in texts."""

    def __init__(self, request: GenerationRequest) -> None:
        self._language = request.language
        self._weights: list[float] = []
        self._places: dict[int, list[int]] = {}
        wholes: list[int] = []
        for word, weight in zip(request.words.words, request.words.weights, strict=True):
            wholes.append(len(self._weights))
            # The whole of an identifier counts as much as all of its parts: `option_7` is not `option_8`.
            parts = max(len(alternative) for alternative in word) - 1
            shares = [1.0] if parts < 1 else [0.5, *[0.5 / parts] * parts]
            for n, share in enumerate(shares):
                for term in {alternative[n] for alternative in word if n < len(alternative)}:
                    self._places.setdefault(term, []).append(len(self._weights))
                self._weights.append(weight * share)
        self._total = sum(self._weights) or 1.0
        for synonym in request.words.synonyms:
            self._places.setdefault(synonym.term, []).extend(wholes[place] for place in synonym.word_indices)

    def read(self, text: str) -> tuple[frozenset[int], int]:
        """Return the places of the question's words, or of their parts, that a text holds, and its number of words."""
        held: set[int] = set()
        words = 0
        for word in lexical.words(text, self._language):
            held.update(i for term in word.terms for i in self._places.get(term, ()))
            words += 1
        return frozenset(held), words

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
class _UnscoredPart:
    section: ReadSection
    passage: int
    block: int
    part: int
    text: str
    held: frozenset[int]
    words: int


def _span(block: QuotableBlock, part: int) -> tuple[int, int]:
    return (block.start, block.end) if block.kind == "code" else (block.parts[part].start, block.parts[part].end)


def _within(text: str, selection: str) -> bool:
    """Whether a selection holds a part, whatever its white space."""
    return bool(selection) and " ".join(text.split()) in selection


def _parts(section: ReadSection, passage: int, asked: QuestionWords, selection: str) -> Iterator[_UnscoredPart]:
    left = _PARTS
    for at, block in enumerate(section.blocks):
        parts = range(1 if block.kind == "code" else len(block.parts))
        # A label says nothing without what it stands over.
        for part in parts[: 0 if block.label else left]:
            text = section.text[slice(*_span(block, part))]
            # A heading's own words answer nothing.
            if text.strip("#*_ \n") not in ("", *section.passage.path) and not _within(text, selection):
                yield _UnscoredPart(section, passage, at, part, text, *asked.read(text))
                left -= 1


def _features(request: GenerationRequest) -> Iterator[tuple[_UnscoredPart, PartFeatures]]:
    """Yield the parts of the passages with their features, in the order of the passages."""
    asked, selection = QuestionWords(request), " ".join(request.selection.split())
    sections = [ReadSection(p, p.section, read_blocks(p.section)) for p in request.passages[:PASSAGES]]
    by_section = [list(_parts(section, n, asked, selection)) for n, section in enumerate(sections)]
    paths = [asked.read(" ".join(section.passage.path))[0] for section in sections]
    rare = [_rare(asked, parts) for parts in by_section]
    rarest = max((v for values in rare for v in values), default=0.0) or 1.0
    first = max((section.passage.score for section in sections), default=0.0) or 1.0
    for section, parts, path, rarities in zip(sections, by_section, paths, rare, strict=True):
        passage = section.passage
        heading = asked.coverage(passage.path[-1]) if passage.path else 0.0
        most = max(range(len(parts)), key=lambda i: asked.share(parts[i].held), default=0)
        for i, (part, rarity) in enumerate(zip(parts, rarities, strict=True)):
            features = PartFeatures(
                with_path=asked.share(part.held | path),
                lead=asked.coverage(part.text[:_LEAD].rpartition(" ")[0] or part.text[:_LEAD]),
                rare=rarity / rarest,
                distance=min(abs(i - most), _FAR) / _FAR,
                opening=heading if i < _OPENING else 0.0,
                rank=passage.score,
                relative_rank=passage.score / first,
                chunk=float(part.text[:200] in passage.text),
                whole=float(passage.whole),
                parts=log(1 + len(parts)) / log(1 + _PARTS),
                depth=len(passage.path) / _DEEPEST,
                code=float(section.blocks[part.block].kind == "code"),
                short=float(part.words < _SHORT),
            )
            yield part, features


def _rare(asked: QuestionWords, parts: Sequence[_UnscoredPart]) -> list[float]:
    """Return for each part of a section the share in which rare words of the section count more."""
    counts = Counter(i for part in parts for i in part.held)
    return [asked.rare_share(part.held, counts, len(parts)) for part in parts]


@cache
def weights() -> tuple[float, ...]:
    values: Mapping[str, float] = load_json("chapterverse_api.generation.quoting", "answer_scores.json")
    return tuple(values.get(name, 0.0) for name in PartFeatures._fields)
