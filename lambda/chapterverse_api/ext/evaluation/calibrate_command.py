"""Command `calibrate`: fits refusals to labelled questions."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

import typer

from chapterverse.calibration import Calibration
from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar
from chapterverse.cli.parameters import argument, option, print_json, settings_from, switch
from chapterverse.errors import IndexLocked
from chapterverse.indexing import index_run
from chapterverse.indexing.apply import has_values, publishing
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger, rows_of
from chapterverse.model import Head, utc_now
from chapterverse.progress import Progress
from chapterverse.store import open_store
from chapterverse_api.ext.evaluation import observations
from chapterverse_api.ext.evaluation.eval_command import QuestionsBaseUrl
from chapterverse_api.ext.evaluation.observations import CalibrationOutcome
from chapterverse_api.ext.evaluation.questions import read_judged
from chapterverse_api.ext.evaluation.session import EvaluationSession


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
            head = tune(head, outcome.calibration, outcome.fusion_weight, target, report)
    note(_summary(outcome, head, dry_run))
    if as_json:
        print_json(_document(outcome, head, dry_run))
    else:
        typer.echo("\n".join(_lines(outcome)))


def tune(head: Head, calibration: Calibration, fusion_weight: float, target: Target, progress: Progress) -> Head:
    """Publish the same points with another calibration and fusion weight; return the live head.

    The ledger is updated too, so the next `index` has nothing to do. A kill in between only makes that run read every
    file.

    Args:
        head: of the generation that was measured, which must still be live.

    Raises:
        IndexLocked: another process is publishing, or published meanwhile.
        IndexFault: the store can't be written to; nothing was changed.
    """
    fields: dict[str, Any] = {"calibration": calibration.to_json(), "fusion_weight": fusion_weight}
    if has_values(head, fields):
        return head
    with publishing(target, progress) as publication:
        live = publication.previous
        if live is None or (live.head.generation, live.head.token) != (head.generation, head.token):
            raise IndexLocked(f"Another process published {target.scope} meanwhile: run it again.")
        # A ledger that describes another head stays as it is.
        ledger_matches = rows_of(target.ledger, live.head) is not None
        tuned = replace(
            live.head,
            generation=live.head.generation + 1,
            published_at=utc_now(),
            token=secrets.token_hex(8),
            **fields,
        )
        publication.commit(tuned)
        if ledger_matches:
            target.ledger.save(target.scope, tuned.generation, (), (), tuned.token)
    return tuned


def _summary(outcome: CalibrationOutcome, head: Head, dry_run: bool) -> str:
    questions = f"{outcome.answerable} answerable and {outcome.unanswerable} unanswerable questions"
    if dry_run:
        return f"Would calibrate {head.scope} on {questions}"
    if head.generation == outcome.head.generation:
        return f"{head.scope} is calibrated on these {questions} already, generation {head.generation}"
    return f"Calibrated {head.scope} on {questions}, generation {head.generation}"


def _lines(outcome: CalibrationOutcome) -> Iterator[str]:
    before, after = outcome.before, outcome.after
    yield f"{'':28} before   after"
    for name, one, other in (
        ("refused of the unanswerable", before.refused, after.refused),
        ("refused of the answerable", before.false_refusals, after.false_refusals),
        ("AUC", before.auc, after.auc),
    ):
        yield f"{name:28} {one:6.3f}  {other:6.3f}"
    yield f"{'weight of the embedder':28} {outcome.head.fusion_weight:6.1f}  {outcome.fusion_weight:6.1f}"
    if outcome.mrr:
        yield f"MRR by weight: {'  '.join(f'{weight:.1f} {mrr:.3f}' for weight, mrr in outcome.mrr.items())}"


def _document(outcome: CalibrationOutcome, head: Head, dry_run: bool) -> dict[str, Any]:
    return {
        "site": head.site,
        "version": head.version,
        "generation": head.generation,
        "embedder": head.embedder.name,
        "questions": {"answerable": outcome.answerable, "unanswerable": outcome.unanswerable},
        "before": _round(asdict(outcome.before)),
        "after": _round(asdict(outcome.after)),
        "fusion_weight": {
            "before": outcome.head.fusion_weight,
            "after": outcome.fusion_weight,
            "mrr": _round({f"{weight:.1f}": mrr for weight, mrr in outcome.mrr.items()}),
        },
        "calibration": outcome.calibration.to_json(),
        "stored": not dry_run,
    }


def _round(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}
