"""The terms that a question is searched by: its own words, and what documentation has for them (`text.thesaurus`).

A synonym is worth a share of its idf, and at most that share of the rarest word that it stands for. Else a rare synonym
of a frequent word would decide the order. Of shares from .2 to .75, .5 found most on nine sites of software, .2 to .3
on public questions about Ray and in conversations about finance and government, whose words are others. What stands
for several words at once is less often wrong: with .45 to .6 for it nothing was lost there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from chapterverse.calibration import WeightedQuestion
from chapterverse.model import SparseVector
from chapterverse.store import Hit

#: What a synonym counts of a word of the question, and of several words.
SHARE, PHRASE_SHARE = 0.3, 0.5


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is searched for.

    Attributes:
        idf: of each term of the question itself.
        values: what each term adds to a score, of the question and of its synonyms.
        vector: what the store multiplies by the idf.
    """

    idf: Mapping[int, float]
    values: Mapping[int, float]
    vector: SparseVector

    @classmethod
    def with_synonyms(cls, question: WeightedQuestion, idf: Mapping[int, float], vector: SparseVector) -> Self:
        """Return the terms of a question and of its synonyms.

        Args:
            idf: the idf of the question's own terms.
            vector: the word weights of the question's own terms.
        """
        weights = dict(zip(vector.indices, vector.values, strict=True))
        values = dict(idf)
        for synonym in question.synonyms:
            share = PHRASE_SHARE if len(synonym.word_indices) > 1 else SHARE
            weight = share * min(1.0, synonym.max_weight / synonym.idf)
            if weight > weights.get(synonym.term, 0.0):
                weights[synonym.term], values[synonym.term] = weight, weight * synonym.idf
        terms = sorted(weights)
        return cls(idf, values, SparseVector(tuple(terms), tuple(weights[term] for term in terms)))

    @property
    def synonyms(self) -> frozenset[int]:
        """The terms that only synonyms have."""
        return frozenset(self.values.keys() - self.idf.keys())

    def weigh_hits(self, hits: Mapping[str, Hit]) -> dict[str, dict[int, float]]:
        """Return the weights of the terms that each hit holds, by chunk id."""
        return {chunk_id: hit.lexical.among(self.values) for chunk_id, hit in hits.items()}
