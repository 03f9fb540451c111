"""Shows a run on a terminal, and as one HTML file, which loads nothing and runs no script.

Questions, headings and addresses are untrusted. On a terminal they have no control characters. In the file Jinja
escapes them, only `http` and `https` addresses become links, and the page's Content-Security-Policy allows its style
sheet by hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse.errors import ConfigurationError
from chapterverse.version import __version__
from chapterverse_api.ext.evaluation import metrics
from chapterverse_api.ext.evaluation.comparison import Bar, Comparison, Move
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run, averages

if TYPE_CHECKING:
    from jinja2 import Template

#: The event that ends each stage of an answer.
_STAGE_ENDS = {"retrieve": "sources", "first": "first words", "total": "end"}
#: Least width of the column of figures' names.
_MIN_NAME_CHARS = 15
#: Longer ids don't widen their column.
_MAX_ID_CHARS = 28
_EVIDENCE_BINS = 20
_TEMPLATE_FOLDER = Path(__file__).parent
#: Worst questions that are listed.
_MAX_WORST = 10
#: Control characters and noncharacters, except tab and line break.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")


def lines(run: Run, comparison: Comparison | None) -> Iterator[str]:
    """Yield the lines for a terminal."""
    yield from _questions(run)
    yield ""
    yield from _figures(run)
    if run.generator is not None:
        yield ""
        yield from _answers(run)
    if comparison:
        yield ""
        yield from _comparison(comparison)


def printable(text: str) -> str:
    """Return a text on one line, without control and bidirectional characters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


def _questions(run: Run) -> Iterator[str]:
    widest = min(_MAX_ID_CHARS, max(len(printable(name)) for name in ("id", *(row.id for row in run.rows))))
    yield f"section page evidence outcome     {'id':{widest}}  question"
    for row in run.rows:
        place = f"{_rank(row.rank):>7} {_rank(row.page_rank):>4} {row.evidence:8.2f}"
        outcome = "refused" if row.refused else "answered" if row.answerable else "not refused"
        outcome = outcome.upper() if row.refused == row.answerable else outcome
        yield f"{place} {outcome:11} {printable(row.id):{widest}}  {printable(row.question)}"


def _figures(run: Run) -> Iterator[str]:
    index, figures = run.index, run.figures
    version = f" {index.version}" if index.version else ""
    yield (
        f"{index.site}{version}, generation {index.generation}: {len(run.answerable)} answerable and "
        f"{len(run.unanswerable)} unanswerable questions, {run.seconds(0.5) * 1000:.1f} ms each "
        f"(95 % within {run.seconds(0.95) * 1000:.1f} ms)"
    )
    if run.answerable:
        yield f"{'':10} {'section':>7} {'page':>7}"
        for name in metrics.RANKED:
            yield f"{name:10} {_in_digits(figures[name]):>7} {_in_digits(figures[metrics.PAGE_PREFIX + name]):>7}"
    refused = sum(row.refused for row in run.unanswerable)
    answered = len(run.answerable) - len(run.false_refusals)
    yield _outcome(metrics.REFUSED, figures, f"{refused} of {len(run.unanswerable)} unanswerable")
    yield _outcome(metrics.ANSWERED, figures, f"{answered} of {len(run.answerable)} answerable")


def _outcome(name: str, figures: Mapping[str, float | None], counts: str) -> str:
    return f"{name:10} {_in_digits(figures[name]):>7}   {counts}"


def of_answers(run: Run) -> Iterator[str]:
    """Yield warnings about the answers, as whole sentences."""
    if run.interrupted and len(run.answers) < len(run.rows):
        yield f"Interrupted: the figures of answers are those of the first {len(run.answers)} questions."
    elif run.interrupted:
        yield "Interrupted: the verifier was not tested."
    if reasons := [answer.degraded for answer in run.answers if answer.degraded]:
        count = f"{len(reasons)} of {len(run.answers)} answers"
        yield f"{count} were not made as configured and count for nothing: {min(reasons)}"


def _answers(run: Run) -> Iterator[str]:
    document = run.to_json()["answers"]
    statuses = ", ".join(f"{n} {status}" for status, n in document["statuses"].items() if n)
    yield f"Answers by {run.generator}: {statuses or 'none'}"
    for name, value in run.answer_figures.items():
        yield f"{name:21} {_in_digits(value):>7}{_describe_counts(name, run)}"
    outcomes = document["outcomes"]
    if outcomes["questions"]:
        right = f"{outcomes['right']} of {outcomes['questions']} answers right"
        yield f"{'brier':21} {_in_digits(document['brier']):>7}   of the confidence, the less the better; {right}"
        yield f"{'ece':21} {_in_digits(document['ece']):>7}   expected calibration error, the less the better"
        risks = "  ".join(f"{r['coverage']:.0%} {r['risk']:.2f}" for r in document["risk_coverage"])
        yield f"Wrong among the surest: {risks}"
    ends = (f"{_STAGE_ENDS[stage]} {seconds:.3f}" for stage, seconds in document["seconds"].items())
    yield f"Mean seconds until: {', '.join(ends)}"


def _describe_counts(name: str, run: Run) -> str:
    """Return the counts behind a share, "" without any."""
    if caught := run.caught.get(name.removeprefix("caught@")):
        return f"   {caught.caught} of {caught.tried} sentences made wrong"
    if name not in metrics.COUNTED:
        return ""
    counts = [answer.count(name) for answer in run.answers if not answer.degraded]
    return f"   {sum(part for part, _ in counts)} of {sum(whole for _, whole in counts)} {metrics.COUNTED[name][1]}"


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"Against the earlier run, over the {comparison.shared} questions of both:"
    for name, ids in (("this run", comparison.only_now), ("the earlier one", comparison.only_before)):
        if ids:
            yield f"{len(ids)} only in {name}, or in other words there: {', '.join(map(printable, ids))}"
    for move in comparison.moves:
        yield f"{'better' if move.better else 'worse':6}  {printable(move.id)}: {'; '.join(_describe_move(move))}"
    widest = max([_MIN_NAME_CHARS, *(len(c.name) for c in comparison.changes)])
    yield f"{'':{widest}} {'before':>6} {'now':>6} {'change':>7}  95 % interval"
    for c in comparison.changes:
        interval = f"{c.interval.low:+.3f} to {c.interval.high:+.3f}"
        yield f"{c.name:{widest}} {c.before:6.3f} {c.now:6.3f} {c.difference:+7.3f}  {interval}  {c.verdict}"


def _describe_move(move: Move) -> Iterator[str]:
    if move.refused_before != move.refused_now:
        yield "refused now" if move.refused_now else "not refused any more"
    if move.rank_before != move.rank_now:
        yield f"section at {_rank(move.rank_before)}, now {_rank(move.rank_now)}"
    if move.ndcg_before != move.ndcg_now:
        yield f"ndcg@10 {move.ndcg_before:.3f}, now {move.ndcg_now:.3f}"


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _in_digits(value: float | None) -> str:
    """Return a figure with three digits, a dash if there is none."""
    return "–" if value is None else f"{value:.3f}"


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
    environment.filters["figure"] = _in_digits
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
        metrics=metrics,
        bars=[bar.to_json(run.measured) for bar in bars],
        comparison=comparison,
        ranks=count_ranks(run),
        evidence=count_evidence(run),
        answers=run.to_json().get("answers"),
        warned=list(of_answers(run)),
        chapters=by_chapter(run.answerable),
        worst=worst(run.answerable),
    )


def count_ranks(run: Run) -> list[tuple[str, int, int]]:
    """Return at each rank how many questions have their first right section there, and their first right page."""
    steps = [*map(str, range(1, metrics.DEPTH + 1)), f"{metrics.DEPTH + 1}+", "none"]

    def count(ranks: Iterable[int | None]) -> Counter[str]:
        return Counter(steps[-1 if rank is None else min(rank - 1, metrics.DEPTH)] for rank in ranks)

    sections, pages = count(r.rank for r in run.answerable), count(r.page_rank for r in run.answerable)
    return [(step, sections[step], pages[step]) for step in steps]


def count_evidence(run: Run) -> list[tuple[str, int, int]]:
    """Return for each twentieth of evidence the numbers of answerable and of unanswerable questions."""
    bins = Counter((min(_EVIDENCE_BINS - 1, int(r.evidence * _EVIDENCE_BINS)), r.answerable) for r in run.rows)
    edges = [f"{edge / _EVIDENCE_BINS:.2f}" for edge in range(_EVIDENCE_BINS + 1)]
    return [(f"{edges[i]} to {edges[i + 1]}", bins[i, True], bins[i, False]) for i in sorted({i for i, _ in bins})]


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
