"""A run: the results of every question, and the figures derived from them. It is saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter, ValidationError

from chapterverse.errors import InputError
from chapterverse.text.json_text import parse_json
from chapterverse_api.contract import AnswerStatus
from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.metrics import AnswerOutcome, AnswerResult, MutationCounts

#: Version of the JSON form; a higher one was saved by a newer release and is rejected.
_RUNS_FORMAT = 1
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Result:
    """One chunk in the results.

    Attributes:
        score: its evidence, 0 to 1.
        match: "anchor" if it is in an expected section, "page" if it is only on the page of one.
    """

    rank: int
    score: float
    url: str
    chapter: str
    section: str | None
    match: Literal["anchor", "page"] | None = None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question and its results.

    Attributes:
        expected: addresses as in the question file; empty for an unanswerable question.
        missing: expected addresses that the index doesn't hold.
        chapter: title of the first expected page in the index, None without one.
        anchor_ranks: rank of each expected section, or None; see `places.ranks`.
        page_ranks: rank of each expected page, or None.
        evidence: the strongest found, 0 to 1.
        refused: whether it was not answered, or only with a reservation.
        seconds: of each stage; "total" without the opening of the index.
        results: the first ten, best first.
        answer: None unless answers were requested.
    """

    id: str
    question: str
    answerable: bool
    expected: tuple[str, ...]
    missing: tuple[str, ...]
    chapter: str | None
    anchor_ranks: tuple[metrics.Rank, ...]
    page_ranks: tuple[metrics.Rank, ...]
    evidence: float
    refused: bool
    seconds: dict[str, float]
    results: tuple[Result, ...]
    answer: AnswerResult | None = None

    def __post_init__(self) -> None:
        if self.answerable != bool(self.anchor_ranks) or self.answerable != bool(self.page_ranks):
            raise ValueError("an answerable question, and no other, has ranks")

    @property
    def rank(self) -> int | None:
        """Rank of the first expected section."""
        return min((r for r in self.anchor_ranks if r is not None), default=None)

    @property
    def page_rank(self) -> int | None:
        """Rank of the first result on an expected page."""
        return min((r for r in self.page_ranks if r is not None), default=None)

    @property
    def figures(self) -> dict[str, float]:
        """The figures that are defined for this question, by name."""
        if not self.answerable:
            return {metrics.REFUSED: float(self.refused)}
        return {**metrics.of_ranks(self.anchor_ranks, self.page_ranks), metrics.ANSWERED: float(not self.refused)}

    @property
    def answer_figures(self) -> dict[str, float]:
        """The figures that are defined for this question's answer, by name."""
        return self.answer.figures(self.answerable) if self.answer else {}


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The index that was searched."""

    site: str
    version: str
    generation: int
    pages: int
    chunks: int
    embedder: str
    reranker: str
    base_url: str
    published_at: str


@dataclass(frozen=True, slots=True)
class Run:
    """The results of all questions against one index.

    Attributes:
        floor: the least evidence that is answered from.
        created_at: ISO 8601 UTC.
        rows: in the order of the question file.
        warnings: whole sentences about the question file.
        generator: the generator's setting; None unless answers were requested.
        caught: counts of the false sentences that the check rejected, by kind of mutation.
        interrupted: whether answering was interrupted.
    """

    index: IndexInfo
    floor: float
    created_at: str
    rows: Annotated[tuple[QuestionResult, ...], Field(min_length=1)]
    warnings: tuple[str, ...] = ()
    format: int = _RUNS_FORMAT
    generator: str | None = None
    caught: dict[str, MutationCounts] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def answerable(self) -> list[QuestionResult]:
        return [row for row in self.rows if row.answerable]

    @property
    def unanswerable(self) -> list[QuestionResult]:
        return [row for row in self.rows if not row.answerable]

    @property
    def false_refusals(self) -> list[QuestionResult]:
        return [row for row in self.answerable if row.refused]

    @property
    def figures(self) -> dict[str, float | None]:
        """Every figure by name, averaged over the questions that it is defined for, or None."""
        return averages(self.rows)

    @property
    def answers(self) -> list[AnswerResult]:
        return [row.answer for row in self.rows if row.answer]

    @property
    def answer_figures(self) -> dict[str, float | None]:
        """Every figure of answers by name; empty unless answers were requested."""
        if self.generator is None:
            return {}
        caught = {
            name: self.caught[kind].share if kind in self.caught else None for kind, name in metrics.CAUGHT.items()
        }
        return {**_means(metrics.ANSWER_METRICS, [row.answer_figures for row in self.rows]), **caught}

    @property
    def measured(self) -> dict[str, float | None]:
        """All figures that may have a bar."""
        return {**self.figures, **self.answer_figures}

    @property
    def outcomes(self) -> list[AnswerOutcome]:
        """Confidence and correctness of the answers."""
        outcomes = (row.answer.outcome(row.answerable) for row in self.rows if row.answer)
        return [outcome for outcome in outcomes if outcome]

    def seconds(self, share: float) -> float:
        """Return the nearest-rank quantile of the seconds per question; .5 is the median."""
        durations = sorted(row.seconds.get("total", 0.0) for row in self.rows)
        return durations[math.ceil(share * len(durations)) - 1]

    def to_json(self) -> dict[str, Any]:
        """Return the run together with its derived figures."""
        document = asdict(self) | {
            "counts": {
                "questions": len(self.rows),
                "answerable": len(self.answerable),
                "unanswerable": len(self.unanswerable),
                "refused": sum(row.refused for row in self.unanswerable),
                "false_refusals": len(self.false_refusals),
            },
            "metrics": _round(self.figures),
            "seconds": {"p50": self.seconds(0.5), "p95": self.seconds(0.95)},
            "rows": [{**asdict(row), "metrics": _round(row.figures)} for row in self.rows],
        }
        return {**document, "answers": self._answers()} if self.generator else document

    def _answers(self) -> dict[str, Any]:
        outcomes = self.outcomes
        stages = dict.fromkeys(stage for answer in self.answers for stage in answer.seconds)
        seconds = {
            stage: metrics.mean([a.seconds[stage] for a in self.answers if stage in a.seconds]) for stage in stages
        }
        return {
            "questions": sum(not answer.degraded for answer in self.answers),
            "statuses": {s: sum(answer.status == s for answer in self.answers) for s in get_args(AnswerStatus)},
            "metrics": _round(self.answer_figures),
            "outcomes": {"questions": len(outcomes), "right": sum(o.right for o in outcomes)},
            **_round({"brier": metrics.brier(outcomes), "ece": metrics.ece(outcomes)}),
            "risk_coverage": [{"coverage": c, "risk": risk} for c, risk in metrics.risks(outcomes).items()],
            "seconds": _round(seconds),
        }


def averages(rows: Sequence[QuestionResult]) -> dict[str, float | None]:
    """Return every figure by name averaged over some rows, None if no row defines it."""
    return _means(metrics.METRICS, [row.figures for row in rows])


def read_run(file: Path) -> Run:
    """Read a file that `eval --run` wrote or `eval --json` printed.

    Raises:
        InputError: it is another kind of file, or a newer release wrote it.
    """
    try:
        document = parse_json(file.read_bytes())
    except ValueError:
        raise InputError(f"{file} is no run: name a file that `chapterverse eval --run` wrote.") from None
    saved = document.get("format") if isinstance(document, dict) else None
    if isinstance(saved, int) and saved > _RUNS_FORMAT:
        raise InputError(f"{file} was saved by a newer release: upgrade chapterverse.")
    try:
        return _adapter().validate_python(document)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "its form"
        raise InputError(f"{file} is no whole run ({place} is wrong): make it again with `eval --run`.") from None


@cache
def _adapter() -> TypeAdapter[Run]:
    return TypeAdapter(Run)


def _means(names: Sequence[str], figures: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    return {name: metrics.mean([f[name] for f in figures if name in f]) for name in names}


def _round(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, _DIGITS) for name, value in figures.items()}
