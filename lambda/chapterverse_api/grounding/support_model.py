"""The trained part of the check: a logistic regression over `features`, in `weights.json`.

`benchmarks/grounding.py DATA --train` writes that file; its docstring says from what. Inference is plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from chapterverse.calibration import logistic
from chapterverse.text.json_text import load_json

#: A term that is in a smaller share of the sections of documentation of any kind is not listed.
MIN_SECTION_SHARE = 0.004


@dataclass(frozen=True, slots=True)
class SupportModel:
    """The trained weights.

    Attributes:
        feature_names: the names of the features, in the order of the coefficients.
        coefficients, intercept: the regression.
        threshold: the score from which a sentence counts as supported.
        uncited_threshold: this score for a sentence that the generator gives no citation.
        vote_threshold: the score below which a second vote is requested.
        slope, offset: turn a score into a probability.
        section_shares: the share of sections, over sites of any kind, that contain each common term.
    """

    feature_names: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float
    threshold: float
    uncited_threshold: float
    vote_threshold: float
    slope: float
    offset: float
    section_shares: Mapping[int, float]

    def score(self, values: Mapping[str, float]) -> float:
        """Return the log odds that the sources say the sentence, before calibration."""
        return self.intercept + sum(
            weight * values[name] for name, weight in zip(self.feature_names, self.coefficients, strict=True)
        )

    def probability(self, score: float) -> float:
        return logistic(self.slope * score + self.offset)

    def rarity(self, term: int) -> float:
        """Return how rare a term is in documentation of any kind: 1 for one that is not listed, .15 for "use"."""
        share = self.section_shares.get(term)
        return 1.0 if share is None else max(0.15, min(1.0, 1 - 0.25 * math.log(share / MIN_SECTION_SHARE)))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SupportModel:
        """Return the model that `weights.json` holds; shares of sections are in thousandths there."""
        lists = {name: tuple(document[name]) for name in ("feature_names", "coefficients")}
        shares = {int(term): share / 1000 for term, share in document["section_shares"].items()}
        return cls(**{**document, **lists, "section_shares": shares})


@cache
def load_model() -> SupportModel:
    """Return the model that comes with the service."""
    return SupportModel.from_json(load_json("chapterverse_api.grounding", "weights.json"))
