"""Question sets, the score of results on them, and the confidence of a difference.

A set is a folder with `pages/` (Markdown), `queries.jsonl` (`id, question, gold, gold_pages`) and `sections.jsonl`
(`id, heading, text`: the sections that `gold` names). A result is in a gold section if it is on a gold page, and shares
a line of 40 characters or more with the section or has its heading.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chapterverse.text import tokens

#: Tokens given to a model: the results that fit together count.
BUDGET = 2560
_LONG = 40
#: Link targets and tags.
_NOISE = re.compile(r"(?<=\])\([^)\n]*\)|(?<=\])\[[^\]\n]*\]|</?\w[^>\n]*>")
_DEEP = 10


@dataclass(frozen=True, slots=True)
class Result:
    """A retriever's result.

    Attributes:
        page: path below `pages/`, with or without its extension.
    """

    page: str
    text: str
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Section:
    """A gold section: its lines, and with neutral scoring also the letters and digits of the long ones."""

    heading: str
    lines: frozenset[str]
    inks: frozenset[str] = frozenset()

    def holds(self, result: Result) -> bool:
        if self.heading and self.heading in {heading.lower() for heading in result.heading_path}:
            return True
        text = _ink(result.text) if self.inks else ""
        return bool(self.lines & _lines(result.text)) or any(ink in text for ink in self.inks)


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    pages: frozenset[str]
    sections: tuple[_Section, ...]

    def score(self, results: Sequence[Result]) -> list[float]:
        """Return this question's value of each of `METRICS` for results in order, best first."""
        on_page = [_page(result.page) in self.pages for result in results]
        sections = [
            frozenset(at for at, section in enumerate(self.sections) if on and section.holds(result))
            for on, result in zip(on_page, results, strict=True)
        ]
        judged = _Judged(on_page, sections, len(self.sections), _fitting(results))
        return [metric(judged) for metric in METRICS.values()]


@dataclass(frozen=True, slots=True)
class _Judged:
    """Results, best first: whether on a gold page, which gold sections, and how many fit the budget."""

    on_page: Sequence[bool]
    sections: Sequence[frozenset[int]]
    gold: int
    fitting: int


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    pages: Path
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, folder: Path, neutral: bool) -> QuestionSet:
        sections = {
            row["id"]: _section(row["heading"], row["text"], neutral) for row in _rows(folder / "sections.jsonl")
        }
        questions = tuple(
            Question(
                row["id"],
                row["question"],
                frozenset(map(_page, row["gold_pages"])),
                tuple(sections[g] for g in row["gold"]),
            )
            for row in _rows(folder / "queries.jsonl")
        )
        return cls(folder.name, folder / "pages", questions)


def read_sets(folder: Path, neutral: bool = False) -> list[QuestionSet]:
    """Return the question sets in a folder, or the one that the folder is; empty if there is none.

    Args:
        neutral: ignore how a chunk writes links and breaks lines.
    """
    folders = (
        [folder] if (folder / "queries.jsonl").is_file() else sorted(p.parent for p in folder.glob("*/queries.jsonl"))
    )
    return [QuestionSet.read(one, neutral) for one in folders]


def _hit(matches: Sequence[object], depth: int) -> float:
    return float(any(matches[:depth]))


def _reciprocal_rank(matches: Sequence[object]) -> float:
    return next((1 / rank for rank, hit in enumerate(matches, 1) if hit), 0.0)


def _ndcg(judged: _Judged) -> float:
    """Return nDCG@10, where a result gains 1 if it is the first in any gold section."""
    seen: set[int] = set()
    gain = 0.0
    for rank, sections in enumerate(judged.sections[:_DEEP], 1):
        if sections - seen:
            gain += 1 / math.log2(rank + 1)
            seen |= sections
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(judged.gold, _DEEP) + 1))


METRICS: Mapping[str, Callable[[_Judged], float]] = {
    "PageHit@5": lambda j: _hit(j.on_page, 5),
    "PageMRR": lambda j: _reciprocal_rank(j.on_page),
    "SecHit@5": lambda j: _hit(j.sections, 5),
    "SecMRR": lambda j: _reciprocal_rank(j.sections),
    f"SecHit@{BUDGET}tok": lambda j: _hit(j.sections, j.fitting),
    f"nDCG@{_DEEP}": _ndcg,
}


def intervals(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """Return the 95 % interval of (theirs - ours) for each metric by a paired bootstrap over the questions.

    Args:
        ours: for each set an array of questions by metrics. Each set is resampled on its own, and all have the same
            weight.
        theirs: the same for another retriever.

    Returns:
        Two rows, low and high, with one number per metric.
    """
    chance = np.random.default_rng(seed)
    means = []
    for our, their in zip(ours, theirs, strict=True):
        count = len(our)
        drawn = chance.multinomial(count, np.full(count, 1 / count), size=resamples) / count
        means.append(drawn @ (their - our))
    return np.percentile(np.mean(means, axis=0), [2.5, 97.5], axis=0)


def _fitting(results: Sequence[Result]) -> int:
    """Return how many of the first results fit the budget together."""
    spent = 0
    for count, result in enumerate(results):
        spent += tokens.count(result.text)
        if spent > BUDGET:
            return count
    return len(results)


def _section(heading: str, text: str, neutral: bool) -> _Section:
    lines = _lines(text)
    # Shorter lines occur in many texts.
    inks = frozenset(ink for ink in map(_ink, lines) if len(ink) >= _LONG // 2) if neutral else frozenset()
    return _Section(heading.lower(), lines, inks)


def _ink(text: str) -> str:
    return "".join(filter(str.isalnum, _NOISE.sub("", text)))


def _lines(text: str) -> frozenset[str]:
    lines = frozenset(line.strip() for line in text.split("\n") if line.strip())
    return frozenset(line for line in lines if len(line) >= _LONG) or lines


def _page(path: str) -> str:
    return re.sub(r"\.mdx?$", "", path.strip("/"))


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
