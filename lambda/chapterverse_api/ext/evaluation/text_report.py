"""Formats a run for a terminal: questions, figures, changes."""

from __future__ import annotations

from collections.abc import Iterator

from chapterverse_api.ext.evaluation import answer_metrics, metrics
from chapterverse_api.ext.evaluation.comparison import Comparison, Move
from chapterverse_api.ext.evaluation.runs import QuestionResult, Run

#: The event that ends each stage of an answer.
_STAGE_ENDS = {"retrieve": "sources", "first": "first words", "total": "end"}
#: Least width of the column of figures' names.
_MIN_NAME_CHARS = 15
#: Longer ids don't widen their column.
_MAX_ID_CHARS = 28


def lines(run: Run, comparison: Comparison | None) -> Iterator[str]:
    """Yield the lines. Untrusted texts are printed without control characters, which could control the terminal."""
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
        yield f"{place} {_outcome(row):11} {printable(row.id):{widest}}  {printable(row.question)}"


def _figures(run: Run) -> Iterator[str]:
    index = run.index
    version = f" {index.version}" if index.version else ""
    yield (
        f"{index.site}{version}, generation {index.generation}: {len(run.answerable)} answerable and "
        f"{len(run.unanswerable)} unanswerable questions, {run.seconds(0.5) * 1000:.1f} ms each "
        f"(95 % within {run.seconds(0.95) * 1000:.1f} ms)"
    )
    figures = run.figures
    if run.answerable:
        yield f"{'':10} {'section':>7} {'page':>7}"
        for name in metrics.RANKED:
            yield f"{name:10} {in_digits(figures[name]):>7} {in_digits(figures[metrics.PAGE_PREFIX + name]):>7}"
    refused = sum(row.refused for row in run.unanswerable)
    answered = len(run.answerable) - len(run.false_refusals)
    yield f"{'refused':10} {in_digits(figures[metrics.REFUSED]):>7}   {refused} of {len(run.unanswerable)} unanswerable"
    yield f"{'answered':10} {in_digits(figures[metrics.ANSWERED]):>7}   {answered} of {len(run.answerable)} answerable"


def of_answers(run: Run) -> list[str]:
    """Return warnings about the answers, as whole sentences."""
    if run.generator is None:
        return []
    warnings = []
    answers = [row.answer for row in run.rows if row.answer]
    if run.interrupted and len(answers) < len(run.rows):
        warnings.append(f"Interrupted: the figures of answers are those of the first {len(answers)} questions.")
    elif run.interrupted:
        warnings.append("Interrupted: the verifier was not tested.")
    reasons = sorted({answer.degraded for answer in answers if answer.degraded})
    if reasons:
        count = len(answers) - len(run.answered)
        warnings.append(
            f"{count} of {len(answers)} answers were not made as configured and count for nothing: {reasons[0]}"
        )
    return warnings


def _answers(run: Run) -> Iterator[str]:
    document = run.to_json()["answers"]
    statuses = ", ".join(f"{n} {status}" for status, n in document["statuses"].items() if n)
    yield f"Answers by {run.generator}: {statuses or 'none'}"
    for name, value in run.answer_figures.items():
        yield f"{name:21} {in_digits(value):>7}{_describe_counts(name, run)}"
    outcomes = document["outcomes"]
    if outcomes["questions"]:
        right = f"{outcomes['right']} of {outcomes['questions']} answers right"
        yield f"{'brier':21} {in_digits(document['brier']):>7}   of the confidence, the less the better; {right}"
        yield f"{'ece':21} {in_digits(document['ece']):>7}   expected calibration error, the less the better"
        risks = "  ".join(f"{r['coverage']:.0%} {r['risk']:.2f}" for r in document["risk_coverage"])
        yield f"Wrong among the surest: {risks}"
    yield "Mean seconds until: " + ", ".join(
        f"{_STAGE_ENDS[stage]} {t:.3f}" for stage, t in document["seconds"].items()
    )


def _describe_counts(name: str, run: Run) -> str:
    """Return the counts behind a share, "" without any."""
    kind = name.partition("@")[2]
    if name.startswith("caught@"):
        counts_of_kind = run.caught.get(kind)
        return f"   {counts_of_kind.caught} of {counts_of_kind.tried} sentences made wrong" if counts_of_kind else ""
    answers = [row.answer for row in run.answered if row.answer]
    counts = {
        answer_metrics.VALIDITY: ("valid", "citations"),
        answer_metrics.PRECISION: ("precise", "pairs"),
        answer_metrics.RECALL: ("carried", "sentences"),
        answer_metrics.NUGGETS: ("contained", "nuggets"),
    }
    if name not in counts:
        return ""
    part, total = (sum(getattr(answer, field) for answer in answers) for field in counts[name])
    return f"   {part} of {total} {counts[name][1]}"


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"Against the earlier run, over the {comparison.shared} questions of both:"
    for name, ids in (("this run", comparison.only_now), ("the earlier one", comparison.only_before)):
        if ids:
            yield f"{len(ids)} only in {name}, or in other words there: {', '.join(map(printable, ids))}"
    for move in comparison.moves:
        yield f"{'better' if move.better else 'worse':6}  {printable(move.id)}: {_describe_move(move)}"
    widest = max([_MIN_NAME_CHARS, *(len(c.name) for c in comparison.changes)])
    yield f"{'':{widest}} {'before':>6} {'now':>6} {'change':>7}  95 % interval"
    for c in comparison.changes:
        interval = f"{c.interval.low:+.3f} to {c.interval.high:+.3f}"
        yield f"{c.name:{widest}} {c.before:6.3f} {c.now:6.3f} {c.difference:+7.3f}  {interval}  {c.verdict}"


def _describe_move(move: Move) -> str:
    changes = []
    if move.refused_before != move.refused_now:
        changes.append("refused now" if move.refused_now else "not refused any more")
    if move.rank_before != move.rank_now:
        changes.append(f"section at {_rank(move.rank_before)}, now {_rank(move.rank_now)}")
    if move.ndcg_before != move.ndcg_now:
        changes.append(f"ndcg@10 {move.ndcg_before:.3f}, now {move.ndcg_now:.3f}")
    return "; ".join(changes)


def _outcome(row: QuestionResult) -> str:
    if row.answerable:
        return "REFUSED" if row.refused else "answered"
    return "refused" if row.refused else "NOT REFUSED"


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def in_digits(value: float | None) -> str:
    """Return a figure with three digits, a dash if there is none."""
    return "–" if value is None else f"{value:.3f}"
