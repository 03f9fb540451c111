"""The logistic function from features to evidence, and its coefficients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from chapterverse.calibration.evidence import ChunkFeatures

_DIGITS = 4
#: Prefix of the JSON names of the coefficients in `Calibration.both`.
_BOTH = "both_"


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
