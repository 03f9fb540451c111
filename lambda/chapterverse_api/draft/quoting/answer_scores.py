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
from functools import cache, lru_cache
from itertools import chain
from math import log
from typing import NamedTuple

from chapterverse.text import lexical
from chapterverse.text.json_text import load_json
from chapterverse_api.draft.quoting.blocks import QuotableBlock, QuotablePart, read_blocks
from chapterverse_api.draft.requests import GenerationRequest, Passage, PassageReading

#: Passages whose parts are scored; those further down hardly ever answer.
MAX_PASSAGES = 5
#: The least log-probability that counts: one in 150.
_MIN_LOG = -5.0
#: The beginning of a part, where its term, option or subject stands.
_LEAD_CHARS = 48
#: Parts of one section that are scored. A section with more is a reference, of which the first parts count.
_MAX_PARTS = 400
#: Headings of a path whose depth has the value 1.
_MAX_DEPTH = 6


class PartFeatures(NamedTuple):
    """See the module's docstring. All are from 0 to about 1, but for the last two, which are from `_MIN_LOG` to 0."""

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


class QuestionWords:
    """The words of a question, to look up in texts of its language."""

    def __init__(self, request: GenerationRequest) -> None:
        self.language = request.language
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
        places = map(self._places.get, _terms_of(text, self.language))
        return frozenset(chain.from_iterable(filter(None, places)))

    def share(self, places: frozenset[int]) -> float:
        """Return the share of the question that the words at these places make up."""
        return sum(self._weights[i] for i in places) / self._total

    def rare_shares(self, parts: Sequence[frozenset[int]]) -> list[float]:
        """Return for each part of a section a share in which a word counts by how few of the parts hold it."""
        counts = Counter(place for places in parts for place in places)
        rarity = {place: log(1 + len(parts) / (1 + count)) for place, count in counts.items()}
        return [sum(self._weights[i] * rarity[i] for i in places) / self._total for places in parts]

    def coverage(self, text: str) -> float:
        """Return the share of the question that a text holds."""
        return self.share(self.read(text))


@dataclass(frozen=True, slots=True, eq=False)
class ParsedSection:
    """A passage's section with its blocks, and the words that are looked up in it."""

    passage: Passage
    words: QuestionWords
    blocks: Sequence[QuotableBlock]

    @classmethod
    def read(cls, passages: Sequence[Passage], words: QuestionWords) -> list[ParsedSection]:
        """Return the sections whose parts are scored."""
        return [cls(p, words, _blocks_of(p.section)) for p in passages[:MAX_PASSAGES]]

    def text_of(self, place: QuotableBlock | QuotablePart) -> str:
        return self.passage.section[place.start : place.end]


class _Part(NamedTuple):
    """A part before it is scored: the numbers of block and part, its text, and the question's words in it."""

    block: int
    part: int
    text: str
    words: frozenset[int]


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """A part of a section with its score.

    Attributes:
        block, part: the place of the block and of the part; a block of code is one part.
    """

    section: ParsedSection
    block: int
    part: int
    text: str
    features: PartFeatures
    score: float

    @property
    def is_code(self) -> bool:
        return self.section.blocks[self.block].kind == "code"


def score_parts(request: GenerationRequest) -> list[ScoredPart]:
    """Return the parts of the passages with their scores, in order."""
    words, selection, scored = QuestionWords(request), " ".join(request.selection.split()), list[ScoredPart]()
    sections = ParsedSection.read(request.passages, words)
    by_section = [list(_find_parts(section, selection)) for section in sections]
    rare_shares = [words.rare_shares([part.words for part in parts]) for parts in by_section]
    rarest = max(chain.from_iterable(rare_shares), default=0.0) or 1.0
    first = max((section.passage.score for section in sections), default=0.0) or 1.0
    is_read = any(section.passage.reading for section in sections)
    weights = load_weights(read=is_read)
    for section, parts, rare in zip(sections, by_section, rare_shares, strict=True):
        passage, path = section.passage, words.read(" ".join(section.passage.path))
        reading = passage.reading or PassageReading(0.0, {})
        for part, rare_share in zip(parts, rare, strict=True):
            features = PartFeatures(
                with_path=words.share(part.words | path),
                lead=words.coverage(part.text[:_LEAD_CHARS].rpartition(" ")[0] or part.text[:_LEAD_CHARS]),
                rare=rare_share / rarest,
                relative_rank=passage.score / first,
                whole=float(passage.is_whole_section),
                parts=log(1 + len(parts)) / log(1 + _MAX_PARTS),
                depth=len(passage.path) / _MAX_DEPTH,
                code=float(section.blocks[part.block].kind == "code"),
                passage_read=max(_MIN_LOG, log(reading.best) if reading.best > 0 else _MIN_LOG) if is_read else 0.0,
                part_read=max(_MIN_LOG, reading.parts.get(part.text.strip(), _MIN_LOG)) if is_read else 0.0,
            )
            score = sum(weight * value for weight, value in zip(weights, features, strict=True))
            scored.append(ScoredPart(section, part.block, part.part, part.text, features, score))
    return scored


def _find_parts(section: ParsedSection, selection: str) -> Iterator[_Part]:
    quota = _MAX_PARTS
    for at, block in enumerate(section.blocks):
        parts: Sequence[QuotableBlock | QuotablePart] = [block] if block.kind == "code" else block.parts
        # A label says nothing without what it stands over.
        for number, part in enumerate(parts[: 0 if block.label else quota]):
            text = section.text_of(part)
            is_selected = bool(selection) and " ".join(text.split()) in selection
            # A heading's own words answer nothing.
            if text.strip("#*_ \n") not in ("", *section.passage.path) and not is_selected:
                yield _Part(at, number, text, section.words.read(text))
                quota -= 1


# Questions have the best sections of a site in common: they are parsed once.
_blocks_of = lru_cache(maxsize=512)(read_blocks)


@lru_cache(maxsize=8192)
def _terms_of(text: str, language: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(term for word in lexical.words(text, language) for term in word.terms))


@cache
def load_weights(*, read: bool) -> tuple[float, ...]:
    """Return the weight of each feature, in the order of `PartFeatures`.

    Args:
        read: whether the reading model has read passages.
    """
    weights: Mapping[str, Mapping[str, float]] = load_json("chapterverse_api.draft.quoting", "answer_scores.json")
    values = weights["read" if read else "words"]
    return tuple(values.get(name, 0.0) for name in PartFeatures._fields)
