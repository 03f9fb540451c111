"""Scores which sentence, item, entry, row or block of code of the passages answers a question, without a model.

A score is linear in the features below. `benchmarks/quoting.py --train` fits the weights in `answer_scores.json` to
readers' questions with the part that answers, as a softmax over all parts of a question's passages. So scores are
compared within one question only: a part whose score is lower by 1 is e times less likely to be the answer.

Shares of the question's words are weighted by idf. A synonym (`text.thesaurus`) counts like its word.

    with_path             share in the part and its headings together
    lead                  share in the beginning of the part, which may be a term, an option or a subject
    rare                  share in the part, where a word counts more if fewer parts of the section hold it, over the
                          largest of all parts
    relative_rank         the passage's value in the order of the search, over the first one's
    whole, parts, depth   all of the section is here; how many parts it has; how deep its heading stands
    code                  the part is code
    passage_read          the log-probability that the reading model gives the passage, 0 without the model
    part_read             the same of the part within its passage; a part that it did not read has the least

`benchmarks/README.md` says how often the first part answers, and which models were tried.
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

#: Passages whose parts are scored; those further down hardly ever answer.
MAX_PASSAGES = 5
#: The least log-probability that counts: one in 150.
MIN_LOG = -5.0
#: The beginning of a part, where its term, option or subject stands.
_LEAD_CHARS = 48
#: Parts of one section that are scored. A section with more is a reference, of which the first parts count.
_MAX_PARTS = 400
#: Headings of a path whose depth has the value 1.
_MAX_DEPTH = 6


class PartFeatures(NamedTuple):
    """See the module's docstring. All are from 0 to about 1, but for the last two, which are from `MIN_LOG` to 0."""

    with_path: float
    lead: float
    rare: float
    relative_rank: float
    whole: float
    parts: float
    depth: float
    code: float
    passage_read: float
    part_read: float


@dataclass(frozen=True, slots=True, eq=False)
class ParsedSection:
    """A passage's section with its blocks."""

    passage: Passage
    text: str
    blocks: Sequence[QuotableBlock]


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """A part of a section with its score.

    Attributes:
        block, part: the place of the block and of the part; a block of code is one part.
    """

    section: ParsedSection
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


def score_parts(request: GenerationRequest) -> list[ScoredPart]:
    """Return the parts of the passages with their scores, in order."""
    scored, weights = [], load_weights(read=is_read(request))
    for part, features in _features(request):
        value = sum(w * x for w, x in zip(weights, features, strict=True))
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

    def read(self, text: str) -> frozenset[int]:
        """Return the places of the question's words, or of their parts, that a text holds."""
        terms = (term for word in lexical.words(text, self._language) for term in word.terms)
        return frozenset(place for term in terms for place in self._places.get(term, ()))

    def share(self, places: frozenset[int]) -> float:
        """Return the share of the question that the words at these places make up."""
        return sum(self._weights[i] for i in places) / self._total

    def rare_share(self, places: frozenset[int], counts: Counter[int], parts: int) -> float:
        """Return a share in which a word counts by how few of a section's parts hold it."""
        return sum(self._weights[i] * log(1 + parts / (1 + counts[i])) for i in places) / self._total

    def coverage(self, text: str) -> float:
        """Return the share of the question that a text holds."""
        return self.share(self.read(text))


@dataclass(frozen=True, slots=True)
class _UnscoredPart:
    section: ParsedSection
    passage: int
    block: int
    part: int
    text: str
    word_places: frozenset[int]


def _span(block: QuotableBlock, part: int) -> tuple[int, int]:
    return (block.start, block.end) if block.kind == "code" else (block.parts[part].start, block.parts[part].end)


def _within(text: str, selection: str) -> bool:
    """Whether a selection holds a part; white space does not count."""
    return bool(selection) and " ".join(text.split()) in selection


def _parts(section: ParsedSection, passage: int, question: QuestionWords, selection: str) -> Iterator[_UnscoredPart]:
    quota = _MAX_PARTS
    for at, block in enumerate(section.blocks):
        parts = range(1 if block.kind == "code" else len(block.parts))
        # A label says nothing without what it stands over.
        for part in parts[: 0 if block.label else quota]:
            text = section.text[slice(*_span(block, part))]
            # A heading's own words answer nothing.
            if text.strip("#*_ \n") not in ("", *section.passage.path) and not _within(text, selection):
                yield _UnscoredPart(section, passage, at, part, text, question.read(text))
                quota -= 1


def _features(request: GenerationRequest) -> Iterator[tuple[_UnscoredPart, PartFeatures]]:
    """Yield the parts of the passages with their features, in the order of the passages."""
    question, selection = QuestionWords(request), " ".join(request.selection.split())
    sections = [ParsedSection(p, p.section, read_blocks(p.section)) for p in request.passages[:MAX_PASSAGES]]
    by_section = [list(_parts(section, n, question, selection)) for n, section in enumerate(sections)]
    paths = [question.read(" ".join(section.passage.path)) for section in sections]
    rare = [_rare(question, parts) for parts in by_section]
    rarest = max((v for values in rare for v in values), default=0.0) or 1.0
    first = max((section.passage.score for section in sections), default=0.0) or 1.0
    by_model = is_read(request)
    read = {s.passage.id: _passage_read(s.passage) if by_model else 0.0 for s in sections}
    for section, parts, path, rarities in zip(sections, by_section, paths, rare, strict=True):
        passage = section.passage
        for part, rarity in zip(parts, rarities, strict=True):
            features = PartFeatures(
                with_path=question.share(part.word_places | path),
                lead=question.coverage(part.text[:_LEAD_CHARS].rpartition(" ")[0] or part.text[:_LEAD_CHARS]),
                rare=rarity / rarest,
                relative_rank=passage.score / first,
                whole=float(passage.is_whole_section),
                parts=log(1 + len(parts)) / log(1 + _MAX_PARTS),
                depth=len(passage.path) / _MAX_DEPTH,
                code=float(section.blocks[part.block].kind == "code"),
                passage_read=read[passage.id],
                part_read=_part_read(passage, part.text) if by_model else 0.0,
            )
            yield part, features


def _rare(question: QuestionWords, parts: Sequence[_UnscoredPart]) -> list[float]:
    """Return for each part of a section the share in which rare words of the section count more."""
    counts = Counter(i for part in parts for i in part.word_places)
    return [question.rare_share(part.word_places, counts, len(parts)) for part in parts]


def is_read(request: GenerationRequest) -> bool:
    """Whether the reading model has read any of the passages."""
    return any(passage.reading for passage in request.passages[:MAX_PASSAGES])


def _passage_read(passage: Passage) -> float:
    return max(MIN_LOG, log(passage.reading.best)) if passage.reading and passage.reading.best > 0 else MIN_LOG


def _part_read(passage: Passage, text: str) -> float:
    parts = passage.reading.parts if passage.reading else {}
    return max(MIN_LOG, parts.get(text.strip(), MIN_LOG))


@cache
def load_weights(*, read: bool) -> tuple[float, ...]:
    """Return the weight of each feature, in the order of `PartFeatures`.

    Args:
        read: whether the reading model has read passages.
    """
    weights: Mapping[str, Mapping[str, float]] = load_json("chapterverse_api.generation.quoting", "answer_scores.json")
    values = weights["read" if read else "words"]
    return tuple(values.get(name, 0.0) for name in PartFeatures._fields)
