"""Runs `chapterverse eval`: searches for every question, on request answers it, and prints what was measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from urllib.parse import urldefrag

import typer

from chapterverse.cli.messages import error, note, progress_bar, warn
from chapterverse.cli.parameters import print_json
from chapterverse.errors import IndexLocked, InputError, ProviderError
from chapterverse.model import Chunk, Head, utc_now
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file
from chapterverse.store import Snapshot
from chapterverse_api.commands import SearchRow
from chapterverse_api.ext.evaluation import report as html
from chapterverse_api.ext.evaluation.answer_metrics import AnswerResult, CitationCounts, MutationCounts
from chapterverse_api.ext.evaluation.comparison import Bar, compare_runs, describe_missed, read_bar, shares
from chapterverse_api.ext.evaluation.eval_command import check_outputs
from chapterverse_api.ext.evaluation.metrics import DEPTH
from chapterverse_api.ext.evaluation.mutations import MUTATIONS, mutations
from chapterverse_api.ext.evaluation.places import (
    ExpectedPlace,
    SitePlaces,
    distinct,
    match_place,
    pages,
    place_without_page,
    ranks,
)
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_judged
from chapterverse_api.ext.evaluation.quoting import bare
from chapterverse_api.ext.evaluation.runs import IndexInfo, QuestionResult, Result, Run, read_run
from chapterverse_api.ext.evaluation.session import CitedClaim, EvaluationSession, Examination, JudgedAnswer
from chapterverse_api.ext.evaluation.text_report import lines, of_answers, printable

#: Results per question. Figures look at the first ten; the rest separates "too late" from "not found".
_TOP_K = 20
#: Mutated sentences between two reports of progress.
_CLAIMS_PER_CALL = 50


def measure(
    questions: Path,
    least: Sequence[str],
    open_settings: Callable[[], Settings],
    *,
    answers: bool,
    compare: Path | None,
    report: Path | None,
    run: Path | None,
    as_json: bool,
) -> None:
    """Measure a file of questions as the options of `eval` say, and exit with 3 if a bar is missed.

    Args:
        least: the bars as `--min` names them.
    """
    bars = _bars(least, answers)
    rows = read_judged(questions)
    places = [file.resolve() for file in (questions, report, run) if file]
    if len(set(places)) < len(places):
        raise typer.BadParameter("QUESTIONS, --report and --run must be different files.")
    check_outputs(report, run)
    before = read_run(compare) if compare else None
    if before and not shares(rows, before):
        raise InputError(f"{compare} holds none of these questions, so there is nothing to compare.")
    template = html.load_template() if report else None
    settings = open_settings()
    session = EvaluationSession.open(settings)
    with progress_bar() as progress:
        measured = search_questions(rows, session, settings, progress)
        if answers:
            if settings.generator != "extractive":
                note(f"Up to {len(rows)} questions are going to {settings.generator}, which may charge for each.")
            measured = answer_questions(measured, rows, session, settings, progress)
        comparison = compare_runs(measured, before, progress) if before else None
    document = {**measured.to_json(), "bars": [bar.to_json(measured.measured) for bar in bars]}
    if comparison:
        document["comparison"] = comparison.to_json()
    if run:
        _save(run, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    if report and template:
        _save(report, html.render(template, measured, bars, comparison))
    for warning in (*measured.warnings, *of_answers(measured)):
        warn(printable(warning))
    if as_json:
        print_json(document)
    else:
        typer.echo("\n".join(lines(measured, comparison)))
    missed = describe_missed(bars, measured.measured)
    for sentence in missed:
        error(sentence)
    if missed or measured.interrupted:
        raise typer.Exit(3 if missed else 1)


def _bars(least: Sequence[str], answers: bool) -> list[Bar]:
    try:
        bars = [read_bar(text) for text in least]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for bar in bars:
        if bar.of_answers and not answers:
            raise typer.BadParameter(f"{bar.name} is a figure of answers: add --answers.")
    return bars


def _save(file: Path, text: str) -> None:
    """Write a file atomically; write to a pipe or a terminal directly."""
    if file.exists() and not file.is_file():
        file.write_text(text, "utf-8")
    else:
        replace_file(file, text.encode())


def search_questions(
    questions: Sequence[QuestionRow], session: EvaluationSession, settings: Settings, report: Progress
) -> Run:
    """Search for every question, one after the other.

    Raises:
        InputError: a question is invalid; the message names its row.
        ProviderError: a part of the system failed, so the figures would be those of another system.
        IndexLocked: another generation was published meanwhile.
        IndexFault: there is no readable index.
    """
    snapshot: Snapshot = session.snapshot()
    head = snapshot.head
    chunks = [point.chunk for point in snapshot.points()]
    site = SitePlaces((head.base_url, settings.base_url), chunks)
    questions = [_place(question, chunks) for question in questions]
    rows, floor = [], 0.0
    for done, question in enumerate(questions):
        report("Asking questions", done, len(questions))
        result = _search_one(question, session, head)
        floor = result["floor"]
        rows.append(_row(question, result, site))
    report("Asking questions", len(questions), len(questions))
    warnings = [
        _warning(question.place, address, site)
        for question, row in zip(questions, rows, strict=True)
        for address in row.missing
    ]
    return Run(_index(head, settings), floor, utc_now(), tuple(rows), tuple(warnings))


def _place(question: QuestionRow, chunks: Sequence[Chunk]) -> QuestionRow:
    """Return the question with the addresses of the file that it names; the root of the index may lie deeper."""
    if question.expected or not question.answerable:
        return question
    file_chunks = [c for c in chunks if f"/{question.file}".endswith(f"/{c.source_file_path}")]
    if not file_chunks:
        raise InputError(f"{question.place}: the index holds no page of the file {question.file!r}.")
    urls = [c.url for c in file_chunks if question.heading and bare(c.section_heading or "") == bare(question.heading)]
    return replace(question, expected=tuple(dict.fromkeys(urls or [urldefrag(file_chunks[0].url).url])))


def _search_one(question: QuestionRow, session: EvaluationSession, head: Head) -> Examination:
    try:
        result = session.examine(question.question, question.history, _TOP_K)
    except InputError as error:
        raise InputError(f"{question.place}: {error}") from None
    if result["degraded"]:
        raise ProviderError(
            f"{question.place}: there are no figures, because they would be of another system: {result['degraded']}",
            retryable=True,
        )
    if result["generation"] != head.generation:
        raise IndexLocked(f"The index of {head.scope} was published anew while it was examined: run it again.")
    return result


def _row(question: QuestionRow, result: Examination, site: SitePlaces) -> QuestionResult:
    expected = {address: site.place(address) for address in question.expected}
    targets = distinct(expected.values())
    hits = result["results"]
    places = [site.place(hit["url"] or place_without_page(hit["source_file_path"], hit["section"])) for hit in hits]
    return QuestionResult(
        id=question.id,
        question=question.question,
        answerable=question.answerable,
        expected=question.expected,
        missing=tuple(address for address, place in expected.items() if not site.holds(place)),
        chapter=next((title for place in targets if (title := site.chapter(place)) is not None), None),
        anchor_ranks=ranks(targets, places),
        page_ranks=ranks(pages(targets), places),
        evidence=result["evidence"],
        refused=result["refused"],
        seconds=result["seconds"],
        results=tuple(_result(hit, targets, place) for hit, place in islice(zip(hits, places, strict=True), DEPTH)),
    )


def _result(hit: SearchRow, targets: Sequence[ExpectedPlace], place: ExpectedPlace) -> Result:
    match = match_place(targets, place)
    return Result(hit["rank"], hit["score"], hit["url"], hit["chapter"], hit["section"], match)


def _warning(row: str, address: str, site: SitePlaces) -> str:
    place = site.place(address)
    if site.holds(place.whole_page):
        return f"{row}: {address} counts as missed, for the index holds its page and no such section."
    return f"{row}: {address} counts as missed, for the index holds no such page."


def _index(head: Head, settings: Settings) -> IndexInfo:
    return IndexInfo(
        site=head.site,
        version=head.version,
        generation=head.generation,
        pages=head.pages,
        chunks=head.chunks,
        embedder=head.embedder.name,
        reranker=settings.reranker,
        base_url=head.base_url,
        published_at=head.published_at,
    )


def answer_questions(
    run: Run, questions: Sequence[QuestionRow], session: EvaluationSession, settings: Settings, report: Progress
) -> Run:
    """Have the service answer every question of a run, and return the run with the answers.

    An interrupt stops the questions and keeps the answers so far.

    Args:
        questions: the questions of the run's rows, in the same order.

    Raises:
        IndexLocked: another generation was published meanwhile.
        IndexFault: there is no readable index.
    """
    site = SitePlaces((run.index.base_url, settings.base_url))
    answers, claims, interrupted = list[AnswerResult | None](), list[CitedClaim](), False
    try:
        for done, question in enumerate(questions):
            report("Answering questions", done, len(questions))
            judged = session.judge_answer(question.question, question.history)
            if judged.generation != run.index.generation:
                raise IndexLocked(
                    f"The index of {run.index.site} was published anew while its questions were answered: run it again."
                )
            answers.append(_answer(question, run.rows[done].expected, judged, site))
            claims += judged.claims if not judged.result.degraded else ()
        report("Answering questions", len(questions), len(questions))
        mutation_counts = _test_check(claims, session, report)
    except KeyboardInterrupt:
        mutation_counts, interrupted = {}, True
    answers += [None] * (len(questions) - len(answers))
    rows = tuple(replace(row, answer=result) for row, result in zip(run.rows, answers, strict=True))
    return replace(run, rows=rows, generator=settings.generator, caught=mutation_counts, interrupted=interrupted)


def _answer(question: QuestionRow, addresses: Sequence[str], judged: JudgedAnswer, site: SitePlaces) -> AnswerResult:
    """Return the result of an answer, with what the question's row tells."""
    expected = distinct(site.place(address) for address in addresses)
    contained = sum(n.stands_in(judged.result.text) for n in question.nuggets)
    return replace(
        judged.result,
        cited=tuple(CitationCounts(url, match_place(expected, site.place(url))) for url in judged.cited),
        nuggets=len(question.nuggets),
        contained=0 if judged.result.refused else contained,
        key=question.key.figures([] if judged.result.refused else judged.segments) if question.key else {},
    )


def _test_check(
    claims: Sequence[CitedClaim], session: EvaluationSession, report: Progress
) -> dict[str, MutationCounts]:
    """Return by kind how many false sentences were checked, and how many the check rejected."""
    mutated = list(mutations(claims))
    stands: list[bool] = []
    for at in range(0, len(mutated), _CLAIMS_PER_CALL):
        report("Testing the verifier", at, len(mutated))
        stands += session.holds([claim for _, claim in mutated[at : at + _CLAIMS_PER_CALL]])
    report("Testing the verifier", len(mutated), len(mutated))
    rejected: dict[str, list[bool]] = {kind: [] for kind in MUTATIONS}
    for (kind, _), supported in zip(mutated, stands, strict=True):
        rejected[kind].append(not supported)
    return {kind: MutationCounts(len(outcomes), sum(outcomes)) for kind, outcomes in rejected.items() if outcomes}
