"""Renders a run as one HTML file, which loads nothing and runs no script.

Questions, headings and addresses are untrusted. Jinja escapes them, only `http` and `https` addresses become links, and
the page's Content-Security-Policy allows its style sheet by hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse import __version__
from chapterverse.errors import ConfigurationError
from chapterverse_api.ext.evaluation import charts, metrics
from chapterverse_api.ext.evaluation.bars import Bar
from chapterverse_api.ext.evaluation.comparison import Comparison
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run, averages
from chapterverse_api.ext.evaluation.text_report import in_digits, of_answers

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATE_FOLDER = Path(__file__).parent
#: Worst questions that are listed.
_MAX_WORST = 10
#: Control characters and noncharacters, except tab and line break.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")


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
        whiskers=charts.whiskers(comparison.changes) if comparison else [],
        width=charts.WIDTH,
        height=charts.HEIGHT,
        rank_chart=charts.rank_chart(run),
        evidence_chart=charts.evidence_chart(run),
        answers=run.to_json().get("answers"),
        warned=of_answers(run),
        confidence_chart=charts.confidence_chart(run) if run.outcomes else None,
        risk_chart=charts.risk_chart(run) if run.outcomes else None,
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
