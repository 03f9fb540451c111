"""Finds the FAQ entry that means the same as a question: the best one is not enough, as there always is one.

A logistic function of six features says how likely an entry answers. `benchmarks/faq.py` fits the weights to questions
that were made for the FAQs of three sites, and measures them on those of three others. `faq.json` keeps them. Words
alone tell little of what is meant, so the least probability leaves most other wordings to the search: an answer under
the authors' name must not be a wrong one. The entry's own question always has its answer.

    asked    share of the question's words, by idf, that the entry's question holds
    matched  share of the words of the entry's question, by idf, that the question holds
    held     share of the question's words, by idf, that the entry holds, its answer included
    lead     BM25 of the entry over the sum of that and the BM25 of the best page
    rarity   idf of the question's words that the entry's question holds, over the largest idf in the index
    length   logarithm of the number of the question's words
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from chapterverse.calibration import Question, match, read_question, read_weights
from chapterverse.calibration.regression import logistic
from chapterverse.filters import And, Filter, In
from chapterverse.knowledge.questions import comparable
from chapterverse.model import FAQ, PAGE, Chunk
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse_api.retrieval.spelling import corrected

#: Entries that are compared, the best by words.
CANDIDATES = 10


class EntryFeatures(NamedTuple):
    """See the module's docstring."""

    asked: float
    matched: float
    held: float
    lead: float
    rarity: float
    length: float


class FaqMatch(NamedTuple):
    """An entry, and how likely it answers the question.

    Attributes:
        searched: the question with its typing mistakes corrected.
    """

    entry: Chunk
    features: EntryFeatures
    probability: float
    searched: str


def find_entry(question: str, snapshot: Snapshot, filters: Filter) -> FaqMatch | None:
    """Return the entry that answers a question; None where none is likely enough.

    Raises:
        IndexFault: the index can't be read.
    """
    best = max(matches(question, snapshot, filters), key=lambda found: found.probability, default=None)
    return best if best and best.probability >= _model()["least"] else None


def matches(question: str, snapshot: Snapshot, filters: Filter) -> Iterator[FaqMatch]:
    """Yield the entries that share words with a question, each with its probability."""
    languages, searched = snapshot.head.languages, corrected(question, snapshot)
    vector = lexical.query_vector(searched, languages)
    entries = snapshot.search_lexical(vector, CANDIDATES, _of_type(FAQ, filters))
    words, idf = read_question(searched, languages, snapshot)
    if not entries or not words.known:
        return
    best_page = max((_bm25(hit, idf) for hit in snapshot.search_lexical(vector, 1, _of_type(PAGE, filters))), default=0)
    headings = "\n".join(hit.chunk.section_heading or "" for hit in entries)
    weights = read_weights(headings, languages, snapshot)
    exactly = comparable(question)
    asked = {term for word in words.words for terms in word for term in terms}
    for hit in entries:
        own = [word.terms for word in lexical.words(hit.chunk.section_heading or "", hit.chunk.language)]
        heading = Question(
            tuple((terms,) for terms in dict.fromkeys(own)),
            tuple(max(weights.get(term, 0.0) for term in terms) for terms in dict.fromkeys(own)),
        )
        rank, shared = _bm25(hit, idf), _share(words, {term for terms in own for term in terms})
        features = EntryFeatures(
            asked=shared,
            matched=_share(heading, asked),
            held=_share(words, frozenset(hit.lexical.indices)),
            lead=rank / (rank + best_page) if rank else 0.0,
            rarity=shared * sum(words.weights) / math.log(max(2, snapshot.head.chunks)),
            length=math.log(len(words.words)),
        )
        same = comparable(hit.chunk.section_heading or "") == exactly
        yield FaqMatch(hit.chunk, features, 1.0 if same else probability(features), searched)


def probability(features: EntryFeatures) -> float:
    """Return how likely an entry of these features answers the question, 0 to 1."""
    model = _model()
    return logistic(model["bias"] + sum(model.get(name, 0.0) * value for name, value in features._asdict().items()))


def _of_type(kind: str, filters: Filter) -> Filter:
    return And((In("type", (kind,)), filters))


def _bm25(hit: Hit, idf: Mapping[int, float]) -> float:
    return sum(weight * idf[term] for term, weight in hit.lexical.among(idf).items())


def _share(question: Question, held: frozenset[int] | set[int]) -> float:
    """Return the share of a question's words, by idf, that are among these terms."""
    total = sum(question.weights)
    pairs = zip(question.words, question.weights, strict=True)
    return sum(weight * match(word, held) for word, weight in pairs) / total if total else 0.0


@cache
def _model() -> Mapping[str, float]:
    text = files("chapterverse_api.retrieval").joinpath("faq.json").read_text(encoding="utf-8")
    model: dict[str, float] = json.loads(text)
    return model
