"""Searches for the command line: rows to print, figures for `eval`, features for `calibrate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chapterverse.filters import readdressed
from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse_api.answering.resources import Resources
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.follow_ups import leaning
from chapterverse_api.conversation.history import Conversation, subject
from chapterverse_api.deadline import Deadline
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.retrieval.follow_up import search_follow_up
from chapterverse_api.retrieval.search import Retrieval, rerank, retrieve
from chapterverse_api.validation import checked

History = list[dict[str, str]] | None

#: Results of which a fusion weight is judged.
_WEIGHED = 10


def search(
    resources: Resources, question: str, top_k: int, filters: Mapping[str, Any], history: History
) -> list[dict[str, Any]]:
    """Return the rows of `search --json` for one question: chunks unexpanded, best first.

    Raises:
        InputError: the question, its history or a filter is out of contract.
        IndexFault: there is no index that can be read.
    """
    found, head = _found(resources, question, history, filters)
    return _rows(resources.index, found, head, top_k)


def examine(resources: Resources, question: str, history: History, top_k: int) -> dict[str, Any]:
    """Return the `results` of `search` for one question and how they came about, for `chapterverse eval`.

    `evidence` is the strongest found and `floor` the least that is answered from, both 0 to 1; `refused` says that
    nothing reaches it; `seconds` by stage, with a `total` that leaves out the opening of the index; `degraded` why
    not all went as configured, or None; `generation` that of the index.

    Raises:
        InputError: the question or its history is out of contract.
        IndexFault: there is no index that can be read.
    """
    resources.index.snapshot()
    started = time.perf_counter()
    found, head = _found(resources, question, history, {})
    seconds = {**found.timings, "total": time.perf_counter() - started}
    return {
        "results": _rows(resources.index, found, head, top_k),
        "evidence": round(found.evidence, 4),
        "floor": found.calibration.floor,
        "refused": not found.answerable,
        "seconds": {stage: round(taken, 6) for stage, taken in seconds.items()},
        "degraded": found.degraded,
        "generation": head.generation,
    }


def weigh(resources: Resources, question: str, history: History, weights: Sequence[float]) -> dict[str, Any]:
    """Return what `chapterverse calibrate` must know of one question.

    `features` are those of every candidate (see `evidence.Features`); `urls` says for each fusion weight where the
    best ten stand, best first.

    Raises:
        InputError: the question or its history is out of contract.
        IndexFault: there is no index that can be read.
        ProviderError: the embedder failed.
    """
    query = checked(query=question, conversation_history=history or [])
    snapshot = resources.index.snapshot()
    first = _follow_up(resources, query, snapshot, lambda text: retrieve(snapshot, resources.models.embedder, text))
    if first.failures:
        raise next(iter(first.failures.values()))

    def weighed(weight: float) -> Retrieval:
        return _follow_up(
            resources, query, snapshot, lambda text: retrieve(snapshot, resources.models.embedder, text, weight=weight)
        )

    found = [first, *map(weighed, weights)]
    return {
        "features": [c.features for c in found[0].candidates if c.features],
        "urls": {
            weight: [resources.index.public_url(c.chunk, snapshot.head) for c in one.candidates[:_WEIGHED]]
            for weight, one in zip(weights, found[1:], strict=True)
        },
    }


def _found(resources: Resources, question: str, history: History, filters: Mapping[str, Any]) -> tuple[Retrieval, Head]:
    query = checked(query=question, conversation_history=history or [], filters=filters)
    snapshot = resources.index.snapshot(query.docs_version)
    where = readdressed(query.filters, lambda url: resources.index.published_url(url, snapshot.head))
    embedder, reranker = resources.models.embedder, resources.models.reranker
    found = _follow_up(resources, query, snapshot, lambda text: retrieve(snapshot, embedder, text, filters=where))
    return rerank(found, found.searched, reranker) if reranker and found.searched else found, snapshot.head


def _follow_up(
    resources: Resources, query: ChatQuery, snapshot: Snapshot, search: Callable[[str], Retrieval]
) -> Retrieval:
    """Search as an answer does, but for the model that would write a follow-up in full."""
    conversation, languages = Conversation.of(query, resources.signer), snapshot.head.languages
    question = query.query or ""
    leans = leaning(question, languages) if conversation.questions else "no"
    found, _ = search_follow_up(
        question, leans, lambda: subject(question, conversation, None, Deadline(), languages), search
    )
    return found


def _rows(index: SiteIndex, found: Retrieval, head: Head, top_k: int) -> list[dict[str, Any]]:
    return [
        {
            "rank": rank,
            "score": round(c.evidence, 4),
            "url": index.public_url(c.chunk, head),
            "chapter": c.chunk.chapter_title,
            "section": c.chunk.section_heading,
            "heading_path": list(c.chunk.heading_path),
            "source_file_path": c.chunk.source_file_path,
            "chunk_id": c.chunk.chunk_id,
            "text": c.chunk.text,
        }
        for rank, c in enumerate(found.candidates[:top_k], 1)
    ]
