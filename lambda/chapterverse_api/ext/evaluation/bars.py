"""Minimum figures for CI, such as `--min recall@5=0.8`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chapterverse_api.ext.evaluation import answer_metrics, metrics
from chapterverse_api.ext.evaluation.mutations import KINDS

#: Tolerance for rounding in a mean of floats.
_HAIR = 1e-9

_OF_ANSWERS = (*answer_metrics.NAMES, *map(answer_metrics.figure_of, KINDS))
_NAMES = (*metrics.NAMES, *_OF_ANSWERS)
_FIGURE_BY_SPELLING = {name: name for name in _NAMES} | {f"anchor.{name}": name for name in metrics.RANKED}


@dataclass(frozen=True, slots=True)
class Bar:
    """The minimum of one figure, 0 to 1."""

    name: str
    least: float

    @property
    def of_answers(self) -> bool:
        """Whether the figure needs answers and not only a search."""
        return self.name in _OF_ANSWERS

    def is_met(self, figures: Mapping[str, float | None]) -> bool:
        value = figures.get(self.name)
        return value is not None and value >= self.least - _HAIR

    def in_words(self, figures: Mapping[str, float | None]) -> str:
        """Return one sentence about a missed bar."""
        value = figures.get(self.name)
        if value is None:
            return f"{self.name} has a bar of {self.least:g}, and no question to measure it by."
        return f"{self.name} is {value:.4g}, below its bar of {self.least:g}."

    def to_json(self, figures: Mapping[str, float | None]) -> dict[str, Any]:
        return {"name": self.name, "least": self.least, "value": figures.get(self.name), "met": self.is_met(figures)}


def read_bar(text: str) -> Bar:
    """Parse `NAME=VALUE`. Names are those of `metrics` and `answer_metrics` in any case, optionally after "anchor.".

    Raises:
        ValueError: it is invalid; the message is one sentence.
    """
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator:
        raise ValueError("A --min needs the form NAME=VALUE, such as recall@5=0.8.")
    figure = _FIGURE_BY_SPELLING.get(name.lower())
    if figure is None:
        raise ValueError(f"There is no figure {name!r}; there are {', '.join(_NAMES)}.")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise ValueError(f"The bar of {figure} must be a number from 0 to 1.")
    return Bar(figure, least)


def describe_missed(bars: Iterable[Bar], figures: Mapping[str, float | None]) -> list[str]:
    """Return a sentence for each missed bar."""
    return [bar.in_words(figures) for bar in bars if not bar.is_met(figures)]
