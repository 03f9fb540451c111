"""The logistic function from features to evidence, and its coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from chapterverse.calibration.evidence import Features
from chapterverse.calibration.regression import logistic

_DIGITS = 4
#: Before the coefficients that also weigh nearness, in the JSON form.
_BOTH = "both_"


@dataclass(frozen=True, slots=True)
class Weights:
    """The coefficient of each feature. As they stand here, nothing is evidence of anything."""

    bias: float = -10.0
    coverage: float = 0.0
    strength: float = 0.0
    length: float = 0.0
    familiarity: float = 0.0
    nearness: float = 0.0
    names: float = 0.0
    title: float = 0.0

    def logit(self, found: Features) -> float:
        """Return the evidence before the logistic function."""
        return (
            self.bias
            + self.coverage * found.coverage
            + self.strength * found.strength
            + self.length * found.length
            + self.familiarity * found.familiarity
            + self.nearness * (found.nearness or 0.0)
            + self.names * found.names
            + self.title * found.title
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """What evidence is in one index.

    Attributes:
        words: weights where words alone were searched.
        both: weights where the question was embedded too; None where nobody measured what the embedder's cosines mean,
            so that words have to do.
        floor: the least evidence that is answered from.
        questions: how many people's questions it was fitted to; 0 for questions made of the index itself.
    """

    words: Weights = Weights()
    both: Weights | None = None
    floor: float = 0.5
    questions: int = 0

    def of(self, found: Features) -> float:
        """Return the evidence that these features are, 0 to 1."""
        weights = self.words if found.nearness is None or self.both is None else self.both
        return logistic(weights.logit(found))

    def to_json(self) -> dict[str, Any]:
        """Return it as numbers by name, as a head keeps it."""
        both = {f"{_BOTH}{name}": value for name, value in asdict(self.both).items()} if self.both else {}
        numbers = {**asdict(self.words), **both, "floor": self.floor, "questions": self.questions}
        return {name: round(value, _DIGITS) for name, value in numbers.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Calibration:
        """Read what any release has written: a feature that it doesn't name has no weight."""
        both = _weights(values, _BOTH) if f"{_BOTH}bias" in values else None
        return cls(_weights(values), both, values.get("floor", 0.5), int(values.get("questions", 0)))


def _weights(values: Mapping[str, Any], prefix: str = "") -> Weights:
    return Weights(**{f.name: values[prefix + f.name] for f in fields(Weights) if prefix + f.name in values})
