"""Turns matched words into evidence: a probability from 0 to 1 that a chunk answers a question.

A fused or min-max score can't express it, because its best hit is always 1. Evidence is absolute: a logistic function
of a question's and a chunk's features. The floor is the least evidence of an answer. The coefficients are stored in the
head of the index that they were fitted for; neither they nor the floor ever move to another index or another embedder.
`indexing.evidence_fit` fits them, and `chapterverse_api.search.results` says when the floor decides.

There are seven features:

    coverage     share of the question's words, weighted by idf, that are in the chunk
    strength     the chunk's BM25 score over the highest score that these words could reach
    length       logarithm of the number of the question's words: a match of one word out of one may be luck
    familiarity  share of the words, weighted by idf, that are anywhere in the index: unknown names differ from words
                 that are merely in other chunks
    names        share of the question's names (identifiers, numbers, capitalized words) in the chunk; 1 without names
    title        share of the page title's words that are in the question; counts only for the page's best chunk
    nearness     cosine of the vectors of chunk and question, by the index's embedder
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from chapterverse.text import lexical, segmentation, thesaurus
from chapterverse.text.lexical import K1, WordTerms, question_words

if TYPE_CHECKING:
    from chapterverse.store import Snapshot

#: Expressions of a question that are looked up in the thesaurus: a longer one says enough in its own words, and each
#: synonym is a term that the store counts.
_MAX_SYNONYM_LOOKUPS = 32

# `code`, words with a digit, an underscore or a joiner, and words with an inner capital.
_NAME = re.compile(r"`[^`\n]+`|\b\w*\d[\w.]*\b|\b\w+_\w+\b|\b\w+[.:/@-]+\w+\b|\b\w+[A-Z]\w*\b")
# A capital inside a sentence; not for German, where every noun has one.
_CAPITAL = re.compile(r"(?<=\w )[A-Z]\w+")
_NOUNS_IN_CAPITALS = frozenset({"de", "lb"})
_DIGITS = 4
#: Prefix of the JSON names of the coefficients in `Calibration.both`.
_BOTH = "both_"


@dataclass(frozen=True, slots=True)
class Synonym:
    """A synonym for one or more words of a question (see `thesaurus`).

    Attributes:
        word_indices: the positions of these words in `WeightedQuestion.words`.
        max_weight: the largest of their weights.
        term: the hashed stem of the synonym.
        idf: the idf of the synonym in the index.
    """

    word_indices: tuple[int, ...]
    max_weight: float
    term: int
    idf: float


@dataclass(frozen=True, slots=True)
class WeightedQuestion:
    """The words of a question, weighted by one index.

    Attributes:
        words: for each distinct word its alternatives (one per language), each the whole term and then its parts.
        weights: the idf of each word; an unknown word weighs as much as a unique one.
        familiarity: the share of the weights that belongs to words in the index.
        names: the words that are names, in the form of `words`.
        synonyms: the synonyms that the index holds.
    """

    words: tuple[tuple[WordTerms, ...], ...] = ()
    weights: tuple[float, ...] = ()
    familiarity: float = 1.0
    names: tuple[tuple[WordTerms, ...], ...] = ()
    synonyms: tuple[Synonym, ...] = ()

    @property
    def has_words(self) -> bool:
        return bool(self.words)


class ChunkFeatures(NamedTuple):
    """The features of one chunk; see the module's docstring. All are from 0 to 1, except `length` and `nearness`.

    Attributes:
        nearness: None if the question was not embedded.
    """

    coverage: float
    strength: float
    length: float
    familiarity: float = 1.0
    nearness: float | None = None
    names: float = 1.0
    title: float = 0.0


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The coefficient of each feature. The defaults give no chunk any evidence."""

    bias: float = -10.0
    coverage: float = 0.0
    strength: float = 0.0
    length: float = 0.0
    familiarity: float = 0.0
    nearness: float = 0.0
    names: float = 0.0
    title: float = 0.0

    def logit(self, features: ChunkFeatures) -> float:
        """Return the argument of the logistic function."""
        return (
            self.bias
            + self.coverage * features.coverage
            + self.strength * features.strength
            + self.length * features.length
            + self.familiarity * features.familiarity
            + self.nearness * (features.nearness or 0.0)
            + self.names * features.names
            + self.title * features.title
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """The coefficients of one index.

    Attributes:
        words: weights without nearness.
        both: weights with nearness; None if the embedder's cosines were never measured, and then `words` is used.
        floor: the least evidence that an answer may rest on.
        questions: number of labelled questions it was fitted to; 0 for questions made of the index itself.
    """

    words: Coefficients = Coefficients()
    both: Coefficients | None = None
    floor: float = 0.5
    questions: int = 0

    def of(self, features: ChunkFeatures) -> float:
        """Return the evidence of these features, 0 to 1."""
        weights = self.words if features.nearness is None or self.both is None else self.both
        return logistic(weights.logit(features))

    def to_json(self) -> dict[str, Any]:
        """Return the numbers by name, as a head stores them."""
        both = {f"{_BOTH}{name}": value for name, value in asdict(self.both).items()} if self.both else {}
        numbers = {**asdict(self.words), **both, "floor": self.floor, "questions": self.questions}
        return {name: round(value, _DIGITS) for name, value in numbers.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Calibration:
        """Parse the format of any release. A missing feature has no weight."""
        both = _weights(values, _BOTH) if f"{_BOTH}bias" in values else None
        return cls(_weights(values), both, values.get("floor", 0.5), int(values.get("questions", 0)))


def _weights(values: Mapping[str, Any], prefix: str = "") -> Coefficients:
    return Coefficients(**{f.name: values[prefix + f.name] for f in fields(Coefficients) if prefix + f.name in values})


def read_question(text: str, languages: Iterable[str], snapshot: Snapshot) -> tuple[WeightedQuestion, dict[int, float]]:
    """Return a question weighted by one index, and the idf of each of its terms."""
    languages = tuple(languages)
    query_words = tuple(question_words(text, languages))
    entries = _entries(text, languages)
    counts = count_terms(_terms_of(query_words, entries), snapshot)
    grouped = _group(query_words, counts)
    question, idf = weigh_words(tuple(grouped.values()), counts, snapshot.head.chunks)
    name_terms = {word.terms[0] for name in _names(text, languages) for word in question_words(name, languages)}
    names = tuple(word for word in question.words if any(terms[0] in name_terms for terms in word))
    places = {surface: place for place, surface in enumerate(grouped)}
    synonyms = tuple(_known_synonyms(entries, places, question.weights, counts, snapshot.head.chunks))
    return replace(question, names=names, synonyms=synonyms), idf


def question_terms(text: str, languages: Iterable[str]) -> set[int]:
    """Return the terms that `read_question` counts in an index: of the question's words and of their synonyms."""
    languages = tuple(languages)
    return _terms_of(question_words(text, languages), _entries(text, languages))


def _terms_of(query_words: Iterable[lexical.Word], entries: Iterable[thesaurus.SynonymEntry]) -> set[int]:
    synonyms = (lexical.hash_term(stem) for entry in entries for stem in entry.synonyms)
    return {*synonyms, *lexical.terms_of(query_words)}


# A question is read to correct it, and then to search for it.
@lru_cache(maxsize=8)
def _entries(text: str, languages: tuple[str, ...]) -> tuple[thesaurus.SynonymEntry, ...]:
    language = lexical.question_language(text, languages)
    return tuple(islice(thesaurus.find_synonyms(text), _MAX_SYNONYM_LOOKUPS)) if language == thesaurus.LANGUAGE else ()


def _known_synonyms(
    entries: Iterable[thesaurus.SynonymEntry],
    places: Mapping[str, int],
    weights: Sequence[float],
    counts: Mapping[int, int],
    chunks: int,
) -> Iterator[Synonym]:
    """Yield the synonyms that the index holds."""
    for entry in entries:
        word_indices = tuple(places[word] for word in entry.words if word in places)
        max_weight = max((weights[place] for place in word_indices), default=0.0)
        for term in map(lexical.hash_term, entry.synonyms):
            if word_indices and counts[term]:
                yield Synonym(word_indices, max_weight, term, idf_of(counts[term], chunks))


def read_weights(text: str, languages: Iterable[str], snapshot: Snapshot) -> dict[int, float]:
    """Return the idf of each term of a text in one index."""
    query_words = tuple(question_words(text, languages))
    counts = count_terms(lexical.terms_of(query_words), snapshot)
    return _idfs(tuple(_group(query_words, counts).values()), counts, snapshot.head.chunks)


def count_terms(terms: Iterable[int], snapshot: Snapshot) -> dict[int, int]:
    """Return in how many chunks of an index each term occurs."""
    ordered = sorted(terms)
    return dict(zip(ordered, snapshot.document_frequencies(ordered), strict=True)) if ordered else {}


def _group(query_words: Sequence[lexical.Word], counts: Mapping[int, int]) -> dict[str, tuple[WordTerms, ...]]:
    """Return the alternatives of each word, by the word as written."""
    indexed_words = {word.surface for word in query_words if counts[word.terms[0]]}
    surfaces = [word.surface for word in query_words]
    # An ASCII question has no words that are written together.
    seams = set[str]() if all(map(str.isascii, surfaces)) else segmentation.seams(surfaces, indexed_words)
    by_surface: dict[str, dict[WordTerms, None]] = {}
    for word in query_words:
        if word.surface not in seams:
            by_surface.setdefault(word.surface, {})[word.terms] = None
    return {surface: tuple(terms) for surface, terms in by_surface.items()}


def _names(text: str, languages: Iterable[str]) -> list[str]:
    codes = {lexical.primary_subtag(tag) for tag in languages}
    return _NAME.findall(text) + ([] if codes & _NOUNS_IN_CAPITALS else _CAPITAL.findall(text))


def weigh_words(
    words: tuple[tuple[WordTerms, ...], ...], counts: Mapping[int, int], chunks: int
) -> tuple[WeightedQuestion, dict[int, float]]:
    """Return the question of these words, and the idf of each of their terms.

    Args:
        words: for each word its alternatives.
        counts: number of chunks that contain each term.
        chunks: number of chunks in the index.
    """
    idf = _idfs(words, counts, chunks)
    weights, familiar = [], 0.0
    for word in words:
        known_idfs = [idf[t] for alternative in word for t in alternative if counts[t]]
        weights.append(max(known_idfs) if known_idfs else idf_of(0, chunks))
        familiar += weights[-1] if known_idfs else 0.0
    return WeightedQuestion(words, tuple(weights), familiar / sum(weights) if weights else 0.0), idf


class Matching:
    """Compares chunks with one question, which must have words.

    Args:
        idf: the idf of each term of the question.
    """

    def __init__(self, question: WeightedQuestion, idf: Mapping[int, float]) -> None:
        self._question = question
        self._idf = idf
        self._total = sum(question.weights)
        self._length = math.log(len(question.words))

    def features(
        self, weights: Mapping[int, float], nearness: float | None = None, title: float = 0.0
    ) -> ChunkFeatures:
        """Return the features of one chunk.

        Args:
            weights: the weights of the question's terms in the chunk (see `SparseVector.among`), and perhaps of others.
            nearness: the cosine of chunk and question. A chunk that is not among the nearest has the least cosine of
                these, an upper bound. None if the question was not embedded.
            title: the share of the page title's words that are in the question.
        """
        question, covered, score = self._question, 0.0, 0.0
        if weights:
            for word, weight in zip(question.words, question.weights, strict=True):
                covered += weight * match_word(word, weights)
        for term, weight in weights.items():
            score += weight * self._idf.get(term, 0.0)
        strength = min(1.0, score / (self._total * (K1 + 1)))
        names = _mean([match_word(word, weights) for word in question.names])
        return ChunkFeatures(
            covered / self._total, strength, self._length, question.familiarity, nearness, names, title
        )


def _idfs(words: tuple[tuple[WordTerms, ...], ...], counts: Mapping[int, int], chunks: int) -> dict[int, float]:
    terms = sorted({t for word in words for alternative in word for t in alternative})
    return {t: idf_of(counts[t], chunks) for t in terms}


def idf_of(count: int, chunks: int) -> float:
    """Return the inverse document frequency of a term that so many of all chunks hold, as the stores weigh it."""
    return math.log((chunks - count + 0.5) / (count + 0.5) + 1)


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 1.0


def match_word(word: Sequence[WordTerms], terms: Container[int]) -> float:
    """Return 1 if the whole word matches in any of its forms, else the largest share of matching parts."""
    share = 0.0
    for term, *parts in word:
        if term in terms:
            return 1.0
        if parts:
            share = max(share, sum(t in terms for t in parts) / len(parts))
    return share
