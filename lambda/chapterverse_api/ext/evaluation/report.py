"""Renders a run as one HTML file, which loads nothing and runs no script.

Questions, headings and addresses are untrusted. Jinja escapes them, only `http` and `https` addresses become links, and
the page's Content-Security-Policy allows its style sheet by hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse.errors import ConfigurationError
from chapterverse.version import __version__
from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.comparison import Bar, Change, Comparison
from chapterverse_api.ext.evaluation.metrics import DEPTH
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run, averages
from chapterverse_api.ext.evaluation.text_report import in_digits, of_answers

if TYPE_CHECKING:
    from jinja2 import Template


#: Size of a chart, and of its plot area.
WIDTH, HEIGHT = 460, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 12, 22, 34
_FIELD_WIDTH, _FIELD_HEIGHT = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
_BINS = 20
#: Labels for ranks after the last one that counts, and for "not found".
_LATER, _NEVER = f"{DEPTH + 1}+", "none"
#: Most grid lines.
_MAX_TICKS = 5
_TEMPLATE_FOLDER = Path(__file__).parent
#: Worst questions that are listed.
_MAX_WORST = 10
#: Control characters and noncharacters, except tab and line break.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle of one series, with its tooltip."""

    x: float
    y: float
    width: float
    height: float
    series: str
    says: str


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """An axis label: `at` is x below the plot area, y beside it."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart's marks and axes.

    Attributes:
        ground: y of the base line.
        floor: x of the evidence floor, if the chart has one.
    """

    marks: tuple[Mark, ...]
    below: tuple[AxisLabel, ...]
    beside: tuple[AxisLabel, ...]
    ground: float
    floor: float | None = None
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


@dataclass(frozen=True, slots=True)
class Whisker:
    """A difference with its interval, on an axis from 0 to 100 with zero at 50."""

    low: float
    at: float
    high: float


def rank_chart(run: Run) -> Chart:
    """Return a histogram of the rank of the first right section, and of the first right page."""
    steps = [*map(str, range(1, DEPTH + 1)), _LATER, _NEVER]
    series = {
        "section": Counter(_step(row.rank) for row in run.answerable),
        "page": Counter(_step(row.page_rank) for row in run.answerable),
    }
    most = max((n for counts in series.values() for n in counts.values()), default=0) or 1
    room = _FIELD_WIDTH / len(steps)
    width, ground = room * 0.38, float(HEIGHT - _BOTTOM)
    marks = []
    for i, step in enumerate(steps):
        for j, (name, counts) in enumerate(series.items()):
            height = counts[step] / most * _FIELD_HEIGHT
            says = f"{name} at rank {step}: {counts[step]}"
            marks.append(_mark(_LEFT + i * room + room * 0.12 + j * width, ground - height, width, height, name, says))
    below = tuple(AxisLabel(round(_LEFT + (i + 0.5) * room, 2), step) for i, step in enumerate(steps))
    return Chart(tuple(marks), below, _ticks(most, ground, up=True), ground)


def evidence_chart(run: Run) -> Chart:
    """Return a histogram of evidence: answerable questions upwards, the others downwards."""
    up = Counter(_bin(row.evidence) for row in run.answerable)
    down = Counter(_bin(row.evidence) for row in run.unanswerable)
    most_up, most_down = max(up.values(), default=0), max(down.values(), default=0)
    unit = _FIELD_HEIGHT / max(1, most_up + most_down)
    ground = round(_TOP + most_up * unit, 2)
    room = _FIELD_WIDTH / _BINS
    marks = []
    for name, counts, above in (("answerable", up, True), ("unanswerable", down, False)):
        for i, n in sorted(counts.items()):
            height = n * unit
            says = f"{name}, evidence {i / _BINS:.2f} to {(i + 1) / _BINS:.2f}: {n}"
            y = ground - height if above else ground
            marks.append(_mark(_LEFT + i * room + 1, y, room - 2, height, name, says))
    below = tuple(AxisLabel(round(_LEFT + i / 5 * _FIELD_WIDTH, 2), f"{i / 5:.1f}") for i in range(6))
    beside = (*_ticks(most_up, ground, up=True, unit=unit), *_ticks(most_down, ground, up=False, unit=unit)[1:])
    return Chart(tuple(marks), below, beside, ground, round(_LEFT + run.floor * _FIELD_WIDTH, 2))


def confidence_chart(run: Run) -> Chart:
    """Return the share of right answers for each tenth of confidence; calibrated confidence makes a diagonal."""
    bars = [
        (
            int(min(b.confidence, 0.999) * 10),
            b.right,
            f"confidence {b.confidence:.2f}: {b.right:.2f} of {b.answers} right",
        )
        for b in metrics.bins(run.outcomes)
    ]
    return _shares(bars, [AxisLabel(_LEFT + i / 5 * _FIELD_WIDTH, f"{i / 5:.1f}") for i in range(6)], "answerable")


def risk_chart(run: Run) -> Chart:
    """Return the share of wrong answers among the most confident tenth, two tenths, and so on to all."""
    points = metrics.risks(run.outcomes)
    bars = [
        (round(r.coverage * 10) - 1, r.risk, f"the surest {r.coverage:.0%}: {r.risk:.2f} wrong")
        for r in points
        if round(r.coverage * 10) > 0
    ]
    room = _FIELD_WIDTH / 10
    return _shares(bars, [AxisLabel(_LEFT + (i + 0.5) * room, f"{i + 1}0 %") for i in range(1, 10, 2)], "unanswerable")


def _shares(bars: Sequence[tuple[int, float, str]], below: Sequence[AxisLabel], series: str) -> Chart:
    """Return a chart of shares in ten columns, from (column, share, tooltip)."""
    room, ground = _FIELD_WIDTH / 10, float(HEIGHT - _BOTTOM)
    marks = [
        _mark(_LEFT + at * room + 2, ground - share * _FIELD_HEIGHT, room - 4, share * _FIELD_HEIGHT, series, says)
        for at, share, says in bars
    ]
    beside = tuple(AxisLabel(round(ground - i / 5 * _FIELD_HEIGHT, 2), f"{i / 5:.1f}") for i in range(6))
    return Chart(tuple(marks), tuple(AxisLabel(round(label.at, 2), label.text) for label in below), beside, ground)


def whiskers(changes: Sequence[Change]) -> list[Whisker]:
    """Return the changes on a common axis."""
    widest = max((max(abs(c.interval.low), abs(c.interval.high), abs(c.difference)) for c in changes), default=0) or 1
    return [
        Whisker(*(round(50 + v / widest * 46, 2) for v in (c.interval.low, c.difference, c.interval.high)))
        for c in changes
    ]


def _mark(x: float, y: float, width: float, height: float, series: str, says: str) -> Mark:
    return Mark(round(x, 2), round(y, 2), round(width, 2), round(height, 2), series, says)


def _step(rank: int | None) -> str:
    return _NEVER if rank is None else str(rank) if rank <= DEPTH else _LATER


def _bin(value: float) -> int:
    return min(_BINS - 1, int(value * _BINS))


def _ticks(most: int, ground: float, *, up: bool, unit: float = 0.0) -> tuple[AxisLabel, ...]:
    """Return labels at even steps from the base line to the highest mark."""
    unit = unit or _FIELD_HEIGHT / most
    step = next(s * 10**e for e in range(12) for s in (1, 2, 5) if most <= s * 10**e * _MAX_TICKS)
    return tuple(AxisLabel(round(ground + n * unit * (-1 if up else 1), 2), str(n)) for n in range(0, most + 1, step))


@dataclass(frozen=True, slots=True)
class Chapter:
    """The figures of one chapter's questions; `title` is None for questions whose page is not in the index."""

    title: str | None
    questions: int
    figures: dict[str, float | None]


def load_template() -> Template:
    """Return the report's template.

    Raises:
        ConfigurationError: Jinja is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise ConfigurationError('A report needs Jinja, which is missing: pip install "chapterverse[eval]".') from None
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATE_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_controls,
    )
    environment.filters["figure"] = in_digits
    environment.filters["linkable"] = _linkable
    return environment.get_template("report.html")


def render(template: Template, run: Run, bars: Sequence[Bar], comparison: Comparison | None) -> str:
    """Return the report as HTML that is also well-formed XML."""
    from markupsafe import Markup

    style = (_TEMPLATE_FOLDER / "report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return template.render(
        run=run,
        release=__version__,
        style=Markup(style),  # noqa: S704  (our own file, which holds nothing to escape)
        style_hash=f"sha256-{digest}",
        figures=run.figures,
        ranked=tuple(metrics.RANKED),
        bars=[bar.to_json(run.measured) for bar in bars],
        comparison=comparison,
        whiskers=whiskers(comparison.changes) if comparison else [],
        width=WIDTH,
        height=HEIGHT,
        rank_chart=rank_chart(run),
        evidence_chart=evidence_chart(run),
        answers=run.to_json().get("answers"),
        warned=of_answers(run),
        confidence_chart=confidence_chart(run) if run.outcomes else None,
        risk_chart=risk_chart(run) if run.outcomes else None,
        chapters=by_chapter(run.answerable),
        worst=worst(run.answerable),
        let_through=[row for row in run.unanswerable if not row.refused],
        depth=metrics.DEPTH,
    )


def by_chapter(rows: Sequence[QuestionResult]) -> list[Chapter]:
    """Return the chapters of the questions, worst recall first, then most questions first."""
    by_title: defaultdict[str | None, list[QuestionResult]] = defaultdict(list)
    for row in rows:
        by_title[row.chapter].append(row)
    chapters = [Chapter(title, len(group), averages(group)) for title, group in by_title.items()]
    return sorted(chapters, key=lambda c: (c.figures["recall@5"] or 0.0, -c.questions, c.title or ""))


def worst(rows: Sequence[QuestionResult]) -> list[QuestionResult]:
    """Return the ten worst questions, by nDCG of sections, then of pages, without perfect ones."""
    ordered = sorted(rows, key=lambda row: (row.figures["ndcg@10"], row.figures["page.ndcg@10"], row.evidence))
    return [row for row in ordered if row.figures["ndcg@10"] < 1][:_MAX_WORST]


def _without_controls(value: Any) -> Any:
    """Replace control characters of a plain text by U+FFFD; return other values as they are."""
    return _CONTROLS.sub("\ufffd", value) if type(value) is str else value


def _linkable(address: str) -> bool:
    return address.lower().startswith(("https://", "http://"))
