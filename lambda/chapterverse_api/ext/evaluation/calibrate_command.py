"""Command `calibrate`: fits refusals to labelled questions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar
from chapterverse.cli.parameters import argument, option, print_json, settings_from, switch
from chapterverse.indexing import index_run
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import Head
from chapterverse.store import open_store
from chapterverse_api.ext.evaluation.eval_command import QuestionsBaseUrl
from chapterverse_api.ext.evaluation.questions import read_judged
from chapterverse_api.ext.evaluation.session import EvaluationSession

# Only the command itself loads the modules that fit.
if TYPE_CHECKING:
    from chapterverse_api.ext.evaluation.observations import CalibrationOutcome, Figures


def calibrate(
    questions: Path = argument("File of questions, one JSON object a line.", "QUESTIONS", default=...),
    most_false: float = option(
        "Largest share of answerable questions to refuse.", name="--max-false-refusals", default=0.08, min=0, max=0.5
    ),
    dry_run: bool = switch("--dry-run", "Print the result and store nothing."),
    base_url: QuestionsBaseUrl = None,
    ledger: parameters.Ledger = None,
    embedder: parameters.Embedder = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Fit refusals to readers' questions.

    Write a file of readers' questions, at least ten that the site answers and ten that it doesn't:

    \b
    {"id": "port", "question": "use another port", "expected": ["guide/serve/#port"]}
    {"id": "fly", "question": "can it fly?", "answerable": false}

    The command searches for every question. It fits a floor of evidence that refuses as many unanswerable questions as
    possible, and at most --max-false-refusals of the answerable ones. With an embedder it also fits the embedder's
    weight in the search. Both are stored with the index. `index` keeps them until the embedder changes, or a release
    changes how words are read.
    """
    from chapterverse_api.ext.evaluation import observations, tuning

    rows = read_judged(questions)
    observations.require_enough(rows, questions)
    settings = settings_from(**flags, ledger=ledger, embedder=embedder, base_url=base_url)
    if not dry_run:
        index_run.require_permission(settings)
    service = EvaluationSession.open(settings)
    with progress_bar() as report:
        outcome = observations.calibrate(rows, most_false, service, settings, report)
        head = outcome.head
        if not dry_run:
            opened, made_by = open_store(settings), head.embedder
            target = Target(head.scope, opened, open_ledger(settings), base_url=head.base_url, made_by=made_by)
            head = tuning.tune(head, outcome.calibration, outcome.fusion_weight, target, report)
    note(_summary(outcome, head, dry_run))
    if as_json:
        print_json(_document(outcome, head, dry_run))
    else:
        typer.echo("\n".join(_lines(outcome)))


def _summary(outcome: CalibrationOutcome, head: Head, dry_run: bool) -> str:
    questions = f"{outcome.answerable} answerable and {outcome.unanswerable} unanswerable questions"
    if dry_run:
        return f"Would calibrate {head.scope} on {questions}"
    if head.generation == outcome.head.generation:
        return f"{head.scope} is calibrated on these {questions} already, generation {head.generation}"
    return f"Calibrated {head.scope} on {questions}, generation {head.generation}"


def _lines(outcome: CalibrationOutcome) -> list[str]:
    before, after = outcome.before, outcome.after
    rows = [
        ("refused of the unanswerable", f"{before.refused:.3f}", f"{after.refused:.3f}"),
        ("refused of the answerable", f"{before.false_refusals:.3f}", f"{after.false_refusals:.3f}"),
        ("AUC", f"{before.auc:.3f}", f"{after.auc:.3f}"),
        ("weight of the embedder", f"{outcome.head.fusion_weight:.1f}", f"{outcome.fusion_weight:.1f}"),
    ]
    lines = [f"{'':28} before   after", *(f"{name:28} {one:>6}  {other:>6}" for name, one, other in rows)]
    if outcome.mrr:
        weights = "  ".join(f"{weight:.1f} {mrr:.3f}" for weight, mrr in outcome.mrr.items())
        lines.append(f"MRR by weight: {weights}")
    return lines


def _document(outcome: CalibrationOutcome, head: Head, dry_run: bool) -> dict[str, Any]:
    return {
        "site": head.site,
        "version": head.version,
        "generation": head.generation,
        "embedder": head.embedder.name,
        "questions": {"answerable": outcome.answerable, "unanswerable": outcome.unanswerable},
        "before": _figures(outcome.before),
        "after": _figures(outcome.after),
        "fusion_weight": {
            "before": outcome.head.fusion_weight,
            "after": outcome.fusion_weight,
            "mrr": {f"{weight:.1f}": round(mrr, 4) for weight, mrr in outcome.mrr.items()},
        },
        "calibration": outcome.calibration.to_json(),
        "stored": not dry_run,
    }


def _figures(figures: Figures) -> dict[str, float]:
    return {name: round(value, 4) for name, value in asdict(figures).items()}
