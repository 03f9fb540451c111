"""Searches for every question of a file and returns the results as a `Run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from urllib.parse import urldefrag

from chapterverse.errors import IndexLocked, InputError, ProviderError
from chapterverse.knowledge.questions import place_without_page
from chapterverse.model import Chunk, Head, utc_now
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api.commands.session import SearchRow
from chapterverse_api.ext.evaluation.metrics import DEPTH
from chapterverse_api.ext.evaluation.places import ExpectedPlace, SitePlaces, distinct, match_place, pages, ranks
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.quoting import bare
from chapterverse_api.ext.evaluation.runs import IndexInfo, QuestionResult, Result, Run
from chapterverse_api.ext.evaluation.session import EvaluationSession, Examination

#: Results per question. Figures look at the first ten; the rest separates "too late" from "not found".
_TOP_K = 20


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
