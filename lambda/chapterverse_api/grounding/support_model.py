"""The trained part of the check: a logistic regression and small boosted trees over `features`, in `weights.json`.

`benchmarks/grounding.py DATA --train` writes that file; its docstring says from what. Inference is plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from chapterverse.calibration.regression import logistic
from chapterverse.text.json_text import load_json

#: `[feature, threshold, below, above]`, or a leaf's value.
Tree: TypeAlias = Any

#: Subtracted from the score for a clash, beside the trained weights; set by hand, as too few of each kind are known.
CLASH_PENALTY, _MAX_CLASHES = 3.0, 2.0
#: A term that is in a smaller share of the sections of documentation of any kind is not listed.
MIN_SECTION_SHARE = 0.004


@dataclass(frozen=True, slots=True)
class SupportModel:
    """The trained weights.

    Attributes:
        feature_names: the names of the features, in the order of the coefficients.
        coefficients, intercept: the regression.
        trees, base_score: the boosted trees, and the score that they start from.
        threshold: the score from which a sentence counts as supported.
        uncited_threshold: this score for a sentence that the generator gives no citation.
        vote_threshold: the score below which a second vote is requested.
        slope, offset: turn a score into a probability.
        section_shares: the share of sections, over sites of any kind, that contain each common term.
    """

    feature_names: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float
    trees: tuple[Tree, ...]
    base_score: float
    threshold: float
    uncited_threshold: float
    vote_threshold: float
    slope: float
    offset: float
    section_shares: Mapping[int, float]

    def score(self, values: Mapping[str, float]) -> float:
        """Return the log odds that the sources say the sentence, before calibration."""
        row = [values[name] for name in self.feature_names]
        linear = self.intercept + sum(c * v for c, v in zip(self.coefficients, row, strict=True))
        boosted = self.base_score + sum(_leaf(tree, row) for tree in self.trees)
        return 0.5 * linear + 0.5 * boosted - CLASH_PENALTY * min(values["clash_count"], _MAX_CLASHES)

    def probability(self, score: float) -> float:
        return logistic(self.slope * score + self.offset)

    def rarity(self, term: int) -> float:
        """Return how rare a term is in documentation of any kind: 1 for one that is not listed, .15 for "use"."""
        share = self.section_shares.get(term)
        return 1.0 if share is None else max(0.15, min(1.0, 1 - 0.25 * math.log(share / MIN_SECTION_SHARE)))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SupportModel:
        """Return the model that `weights.json` holds; shares of sections are in thousandths there."""
        lists = {name: tuple(document[name]) for name in ("feature_names", "coefficients", "trees")}
        shares = {int(term): share / 1000 for term, share in document["section_shares"].items()}
        return cls(**{**document, **lists, "section_shares": shares})


def _leaf(tree: Tree, row: Sequence[float]) -> float:
    while isinstance(tree, list):
        tree = tree[3] if row[tree[0]] >= tree[1] else tree[2]
    return float(tree)


@cache
def load_model() -> SupportModel:
    """Return the model that comes with the service."""
    return SupportModel.from_json(load_json("chapterverse_api.grounding", "weights.json"))
