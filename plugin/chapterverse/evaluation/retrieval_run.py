"""Searches for every question of a file and keeps the results as a `Run`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from chapterverse.errors import IndexLocked, InputError, ProviderError
from chapterverse.evaluation.metrics import DEPTH
from chapterverse.evaluation.places import ExpectedPlace, SitePlaces, distinct, match, pages, ranks
from chapterverse.evaluation.questions import QuestionRow
from chapterverse.evaluation.runs import IndexInfo, Result, Row, Run
from chapterverse.model import Head, utc_now
from chapterverse.progress import Progress
from chapterverse.session import Session
from chapterverse.settings import Settings
from chapterverse.store import Snapshot

#: Results that are asked for; figures look at the first ten, the rest tells "found too late" from "not found".
_ASKED_FOR = 20


def examine(asked: Sequence[QuestionRow], session: Session, settings: Settings, report: Progress) -> Run:
    """Ask the service (what the entry point `open` gives) every question, one after the other.

    Raises:
        InputError: a question is out of contract; the message names its row.
        ProviderError: a part of the system failed, so that the figures would be of another one.
        IndexLocked: the index was published anew meanwhile.
        IndexFault: there is no index that can be read.
    """
    snapshot: Snapshot = session.snapshot()
    head = snapshot.head
    site = SitePlaces((head.base_url, settings.base_url), (point.chunk for point in snapshot.points()))
    rows, floor = [], 0.0
    for done, one in enumerate(asked):
        report("Asking questions", done, len(asked))
        found = _found(one, session, head)
        floor = found["floor"]
        rows.append(_row(one, found, site))
    report("Asking questions", len(asked), len(asked))
    warnings = [
        _warning(one.place, address, site) for one, row in zip(asked, rows, strict=True) for address in row.missing
    ]
    return Run(_index(head, settings), floor, utc_now(), tuple(rows), tuple(warnings))


def _found(asked: QuestionRow, session: Session, head: Head) -> dict[str, Any]:
    try:
        found: dict[str, Any] = session.examine(asked.question, asked.history, _ASKED_FOR)
    except InputError as error:
        raise InputError(f"{asked.place}: {error}") from None
    if found["degraded"]:
        raise ProviderError(
            f"{asked.place}: there are no figures, because they would be of another system: {found['degraded']}",
            retryable=True,
        )
    if found["generation"] != head.generation:
        raise IndexLocked(f"The index of {head.scope} was published anew while it was examined: run it again.")
    return found


def _row(asked: QuestionRow, found: dict[str, Any], site: SitePlaces) -> Row:
    expected = {address: site.place(address) for address in asked.expected}
    wanted = distinct(expected.values())
    places = [site.place(result["url"]) for result in found["results"]]
    return Row(
        id=asked.id,
        question=asked.question,
        answerable=asked.answerable,
        expected=asked.expected,
        missing=tuple(address for address, place in expected.items() if not site.indexed(place)),
        chapter=next((title for place in wanted if (title := site.chapter(place)) is not None), None),
        anchor_ranks=ranks(wanted, places),
        page_ranks=ranks(pages(wanted), places),
        evidence=found["evidence"],
        refused=found["refused"],
        seconds=found["seconds"],
        results=tuple(_result(r, wanted, p) for r, p in islice(zip(found["results"], places, strict=True), DEPTH)),
    )


def _result(result: dict[str, Any], expected: Sequence[ExpectedPlace], place: ExpectedPlace) -> Result:
    shown = {name: result[name] for name in ("rank", "score", "url", "chapter", "section")}
    return Result(**shown, match=match(expected, place))


def _warning(row: str, address: str, site: SitePlaces) -> str:
    place = site.place(address)
    if site.indexed(place.whole_page):
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
