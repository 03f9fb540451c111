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

#: Subtracted from the score for a clash, beside the trained weights.
CLASH = 3.0
#: A term that is rarer in documentation of any kind than this share of its sections is not listed.
RAREST = 0.004


@dataclass(frozen=True, slots=True)
class SupportModel:
    """The trained weights.

    Attributes:
        names: the names of the features, in the order of the weights.
        weights, intercept: the coefficients of the regression.
        trees, start: the boosted trees, and the score that they start from.
        threshold: the score from which a sentence counts as supported.
        derived: this score for a sentence without a claimed citation.
        decided: the score below which a second vote is requested.
        slope, shift: turn a score into a probability.
        common: the share of sections, over sites of any kind, that hold each common term.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    trees: tuple[Tree, ...]
    start: float
    threshold: float
    derived: float
    decided: float
    slope: float
    shift: float
    common: Mapping[int, float]

    def score(self, values: Mapping[str, float]) -> float:
        """Return the log odds that the sources say the sentence, before calibration.

        A clash subtracts a fixed amount beside the trained weights, because there are too few of each kind to train on.
        """
        row = [values[name] for name in self.names]
        linear = self.intercept + sum(w * v for w, v in zip(self.weights, row, strict=True))
        learned = 0.5 * linear + 0.5 * (self.start + sum(_leaf(tree, row) for tree in self.trees))
        return learned - CLASH * min(values["clash"], 2.0)

    def probability(self, score: float) -> float:
        return logistic(self.slope * score + self.shift)

    def rarity(self, term: int) -> float:
        """Return how rare a term is in documentation of any kind: 1 for one that is not listed, .15 for "use"."""
        share = self.common.get(term)
        return 1.0 if share is None else max(0.15, min(1.0, 1 - 0.25 * math.log(share / RAREST)))

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> SupportModel:
        """Return the model that `weights.json` holds."""
        common = {int(term): share / 1000 for term, share in document["common"].items()}
        names, weights = tuple(document["names"]), tuple(document["weights"])
        fields = ("intercept", "start", "threshold", "derived", "decided", "slope", "shift")
        fixed = {name: float(document[name]) for name in fields}
        return cls(names=names, weights=weights, trees=tuple(document["trees"]), common=common, **fixed)


def _leaf(tree: Tree, row: Sequence[float]) -> float:
    while isinstance(tree, list):
        tree = tree[3] if row[tree[0]] >= tree[1] else tree[2]
    return float(tree)


@cache
def load_model() -> SupportModel:
    """Return the model that comes with the service."""
    return SupportModel.read(load_json("chapterverse_api.grounding", "weights.json"))
