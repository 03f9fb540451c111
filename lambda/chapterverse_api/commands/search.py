"""Searches for the command line: rows to print, figures for `eval`, features for `calibrate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, TypedDict

from chapterverse.filters import FilterTree
from chapterverse.knowledge.questions import place_without_page
from chapterverse.model import MEMORY, Head
from chapterverse.store import Snapshot
from chapterverse_api.answering.resources import Resources
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.history import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.retrieval.reading import read_candidates
from chapterverse_api.retrieval.results import Retrieval
from chapterverse_api.retrieval.search import SearchRequest, rerank, retrieve
from chapterverse_api.retrieval.site_search import FollowUp, search_follow_up, site_filter
from chapterverse_api.validation import make_query

#: Types of documents that inform an answer and are no results of a search.
_HIDDEN_TYPES = frozenset({MEMORY})
#: Results by which a fusion weight is judged.
_RESULTS_PER_WEIGHT = 10


#: Earlier messages of a conversation, as in `ChatQuery.conversation_history`.
History = list[dict[str, str]] | None


class SearchRow(TypedDict):
    """A chunk that a search found. `score` is its evidence, `url` the address for readers."""

    rank: int
    score: float
    url: str
    chapter: str
    section: str | None
    heading_path: list[str]
    source_file_path: str
    chunk_id: str
    text: str


class Examination(TypedDict):
    """The results of a search and its figures.

    Attributes:
        evidence: the strongest evidence of a result, 0 to 1.
        floor: the least evidence that is answered from, 0 to 1.
        refused: whether there is no answer, or only one with a reservation.
        seconds: the seconds of each stage, and a `total` without the opening of the index.
        degraded: the reason why a part did not work as configured, or None.
        generation: the generation of the index.
    """

    results: list[SearchRow]
    evidence: float
    floor: float
    refused: bool
    seconds: dict[str, float]
    degraded: str | None
    generation: int


class WeightTrial(TypedDict):
    """The `calibration.ChunkFeatures` of every candidate, and the addresses of the ten best by fusion weight."""

    features: list[Any]
    urls: dict[float, list[str]]


def search_rows(
    resources: Resources, question: str, top_k: int, filters: Mapping[str, Any], history: History
) -> list[SearchRow]:
    """Return the rows of `search --json` for one question: chunks unexpanded, best first.

    Raises:
        InputError: the question, its history or a filter is invalid.
        IndexFault: no index can be read.
    """
    retrieval, head = _search(
        resources, make_query(query=question, conversation_history=history or [], filters=filters)
    )
    return _rows(resources.index, retrieval, head, top_k)


def measure_search(resources: Resources, question: str, history: History, top_k: int) -> Examination:
    """Return the `search_rows` of one question and their figures.

    Raises:
        InputError: the question or its history is invalid.
        IndexFault: no index can be read.
    """
    resources.index.snapshot()
    started = time.perf_counter()
    query = make_query(query=question, conversation_history=history or [])
    retrieval, head = _search(resources, query, _HIDDEN_TYPES)
    seconds = {**retrieval.timings, "total": time.perf_counter() - started}
    return {
        "results": _rows(resources.index, retrieval, head, top_k),
        "evidence": round(retrieval.evidence, 4),
        "floor": retrieval.calibration.floor,
        "refused": not retrieval.sure,
        "seconds": {stage: round(value, 6) for stage, value in seconds.items()},
        "degraded": retrieval.degraded,
        "generation": head.generation,
    }


def collect_features(resources: Resources, question: str, history: History, weights: Sequence[float]) -> WeightTrial:
    """Search with each fusion weight, and return the candidates.

    Raises:
        InputError: the question or its history is invalid.
        IndexFault: no index can be read.
        ProviderError: the embedder failed.
    """
    query = make_query(query=question, conversation_history=history or [])
    snapshot = resources.index.snapshot()
    embedder, filters = resources.models.embedder, _filter(query, snapshot, resources, _HIDDEN_TYPES)
    # Embed a question once, however many weights are tried.
    embed = cache(embedder.embed_query) if embedder else None

    def search_with(weight: float | None) -> Retrieval:
        return _search_follow_up(
            resources,
            query,
            snapshot,
            lambda text: retrieve(
                snapshot, None, SearchRequest(text, embed(text) if embed else None, filters, weight=weight)
            ),
        )

    retrievals = [search_with(weight) for weight in (None, *weights)]
    return {
        "features": [c.features for c in retrievals[0].candidates if c.features],
        "urls": {
            weight: [
                resources.index.public_url(c.chunk, snapshot.head)
                or place_without_page(c.chunk.source_file_path, c.chunk.section_heading)
                for c in retrieval.candidates[:_RESULTS_PER_WEIGHT]
            ]
            for weight, retrieval in zip(weights, retrievals[1:], strict=True)
        },
    }


def _search(
    resources: Resources, query: ChatQuery, hidden_types: AbstractSet[str] = frozenset()
) -> tuple[Retrieval, Head]:
    snapshot = resources.index.snapshot(query.docs_version)
    filters = _filter(query, snapshot, resources, hidden_types)
    models = resources.models
    retrieval = _search_follow_up(
        resources,
        query,
        snapshot,
        lambda text: retrieve(snapshot, models.embedder, SearchRequest(text, filters=filters)),
    )
    retrieval = rerank(retrieval, retrieval.searched, models.reranker)
    return read_candidates(retrieval, retrieval.searched, models.reader, Deadline()), snapshot.head


def _filter(
    query: ChatQuery, snapshot: Snapshot, resources: Resources, hidden_types: AbstractSet[str]
) -> FilterTree | None:
    return site_filter(query.filters, snapshot, resources.index, entity=query.entity, hidden_types=hidden_types)


def _search_follow_up(
    resources: Resources, query: ChatQuery, snapshot: Snapshot, search: Callable[[str], Retrieval]
) -> Retrieval:
    """Search as an answer does, except that no model writes a follow-up in full."""
    question, conversation = query.query or "", Conversation.from_query(query, resources.signer)
    follow_up = FollowUp.detect(question, conversation, None, Deadline(), snapshot.head.languages)
    return search_follow_up(question, follow_up, search)[0]


def _rows(index: SiteIndex, retrieval: Retrieval, head: Head, top_k: int) -> list[SearchRow]:
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
        for rank, c in enumerate(retrieval.candidates[:top_k], 1)
    ]
