"""Finds the FAQ entry that means the same as a question. The nearest entry may still mean something else.

A logistic function of six features says how likely an entry answers. `benchmarks/faq.py` fits the weights to
questions that were made for the FAQs of eight sites, and measures each site with weights of the others. `faq.json`
keeps them. Words alone tell little of what is meant, so the least probability leaves most other wordings to the search:
an answer under the authors' name must not be a wrong one. The entry's own question always has its answer.

    matched  share of the words of the entry's question, by idf, that the question holds
    held     share of the question's words, by idf, that the entry holds, its answer included
    rarity   idf of the question's words that the entry's question holds, over the largest idf in the index
    letters  Dice coefficient of the trigrams of letters of both questions
    score    BM25 of the entry
    lead     BM25 of the entry over the sum of that and the BM25 of the best page

None of them may lower the probability, so a question that is nearer to an entry never loses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from chapterverse.calibration import WeightedQuestion, logistic, match_word, read_question, read_weights
from chapterverse.ext.knowledge.entries import comparable, entry_id
from chapterverse.filters import And, Filter, In
from chapterverse.model import FAQ, PAGE, Chunk, SparseVector
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse.text.json_text import load_json
from chapterverse_api.search.lookups import LookupQuery, LookupResult
from chapterverse_api.search.question import correct
from chapterverse_api.search.ranking import Candidate

#: Entries that are compared, the best by words.
_MAX_ENTRIES = 10


class EntryFeatures(NamedTuple):
    """The features of an entry, as the module describes them."""

    matched: float
    held: float
    rarity: float
    letters: float
    score: float
    lead: float


class FaqMatch(NamedTuple):
    """An entry, and how likely it answers the question.

    Attributes:
        searched: the question with its typing mistakes corrected.
        lexical: the entry's terms.
    """

    entry: Chunk
    features: EntryFeatures
    probability: float
    searched: str
    lexical: SparseVector

    @property
    def candidate(self) -> Candidate:
        """The entry as a search result, with the probability as its evidence, and the features as its components."""
        return Candidate(self.entry, self.lexical, self.probability, self.probability, self.features._asdict())


def look_up(query: LookupQuery) -> LookupResult:
    """Return the entry that means the same as a question as its answer."""
    match = find_entry(query.text, query.snapshot, query.filters) if query.may_win else None
    if match is None:
        return LookupResult()
    return LookupResult([match.candidate], wins=True, searched=match.searched, entry_id=entry_id(match.entry))


def find_entry(question: str, snapshot: Snapshot, filters: Filter) -> FaqMatch | None:
    """Return the entry that answers a question; None if none is likely enough.

    Raises:
        IndexFault: the index can't be read.
    """
    best = nearest_entry(question, snapshot, filters)
    return best if best and best.probability >= least_probability() else None


def nearest_entry(question: str, snapshot: Snapshot, filters: Filter) -> FaqMatch | None:
    """Return the entry that most likely answers a question, however unlikely; None if none shares a word."""
    return max(score_entries(question, snapshot, filters), key=lambda match: match.probability, default=None)


def least_probability() -> float:
    """Return the probability from which on an entry answers."""
    return _model()["least"]


def score_entries(question: str, snapshot: Snapshot, filters: Filter) -> Iterator[FaqMatch]:
    """Yield the entries that share words with a question, each with its probability."""
    languages, searched = snapshot.head.languages, correct(question, snapshot)
    vector = lexical.query_vector(searched, languages)
    entries = snapshot.search_lexical(vector, _MAX_ENTRIES, _of_type(FAQ, filters))
    words, idf = read_question(searched, languages, snapshot)
    if not entries or not words.has_words:
        return
    weights = read_weights("\n".join(hit.chunk.section_heading or "" for hit in entries), languages, snapshot)
    best_page = max((_bm25(hit, idf) for hit in snapshot.search_lexical(vector, 1, _of_type(PAGE, filters))), default=0)
    question_terms = {term for word in words.words for terms in word for term in terms}
    for hit in entries:
        heading = hit.chunk.section_heading or ""
        # Each word once.
        own_words = tuple(dict.fromkeys(word.terms for word in lexical.words(heading, hit.chunk.language)))
        own_weights = tuple(max(weights.get(term, 0.0) for term in terms) for terms in own_words)
        entry = WeightedQuestion(tuple((terms,) for terms in own_words), own_weights)
        score, shared = _bm25(hit, idf), _share(words, {term for terms in own_words for term in terms})
        features = EntryFeatures(
            matched=_share(entry, question_terms),
            held=_share(words, frozenset(hit.lexical.indices)),
            rarity=shared * sum(words.weights) / math.log(max(2, snapshot.head.chunks)),
            letters=_dice(_trigrams(searched), _trigrams(heading)),
            score=score,
            lead=score / (score + best_page) if score else 0.0,
        )
        is_same = comparable(heading) == comparable(question)
        yield FaqMatch(hit.chunk, features, 1.0 if is_same else probability(features), searched, hit.lexical)


def probability(features: EntryFeatures, weights: Mapping[str, float] | None = None) -> float:
    """Return how likely an entry of these features answers the question, 0 to 1; by default with our own weights."""
    model = weights or _model()
    return logistic(model["bias"] + sum(model.get(name, 0.0) * value for name, value in features._asdict().items()))


def _of_type(kind: str, filters: Filter) -> Filter:
    return And((In("type", (kind,)), filters))


def _bm25(hit: Hit, idf: Mapping[int, float]) -> float:
    return sum(weight * idf[term] for term, weight in hit.lexical.among(idf).items())


def _share(question: WeightedQuestion, terms: frozenset[int] | set[int]) -> float:
    """Return the share of a question's words, by idf, that are among these terms."""
    total = sum(question.weights)
    pairs = zip(question.words, question.weights, strict=True)
    return sum(weight * match_word(word, terms) for word, weight in pairs) / total if total else 0.0


def _trigrams(text: str) -> set[str]:
    spaced = f" {comparable(text)} "
    return {spaced[i : i + 3] for i in range(len(spaced) - 2)}


def _dice(a: set[str], b: set[str]) -> float:
    return 2 * len(a & b) / max(1, len(a) + len(b))


@cache
def _model() -> Mapping[str, float]:
    model: dict[str, float] = load_json("chapterverse_api.ext.knowledge", "faq.json")
    return model
