"""The service as its owner's commands use it. Nothing is charged here, because the budget is for the public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypedDict

from chapterverse.filters import FilterTree
from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.detection import FollowUpVerdict, detect_follow_up, rewrite_follow_up
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import (
    SearchRequest,
    order_by_models,
    retrieve,
    search_follow_up,
    site_filter,
)
from chapterverse_api.service import Service
from chapterverse_api.validation import make_query

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


class ServiceSession(Service):
    """The service for its owner.

    A question, its history or a filter that is invalid raises `InputError`, and an index that can't be read
    `IndexFault`.
    """

    __slots__ = ()

    def snapshot(self, version: str | None = None) -> Snapshot:
        return self.resources.index.snapshot(version)

    def answer(self, **fields: Any) -> dict[str, Any]:
        query, deadline = make_query(**without_none(fields)), Deadline()
        *_, response = answer_turn(Turn.open(query, self.resources, deadline=deadline, tools=self.turn_tools(deadline)))
        return response.model_dump(mode="json")

    def search(self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None) -> list[SearchRow]:
        """Return the rows of `search --json` for one question: chunks unexpanded, best first."""
        query = make_query(query=question, conversation_history=history or [], filters=filters)
        return self._rows(*self._search(query), top_k)

    def _search(self, query: ChatQuery, hidden_types: AbstractSet[str] = frozenset()) -> tuple[Retrieval, Head]:
        models, snapshot = self.resources.models, self.snapshot(query.docs_version)
        filters = self._filter(query, snapshot, hidden_types)
        retrieval = self._search_follow_up(
            query, snapshot, lambda text: retrieve(snapshot, models.embedder, SearchRequest(text, filters=filters))
        )
        ordered = order_by_models(retrieval, retrieval.searched, models.reranker, models.reader, Deadline())
        return ordered, snapshot.head

    def _filter(self, query: ChatQuery, snapshot: Snapshot, hidden_types: AbstractSet[str]) -> FilterTree | None:
        index = self.resources.index
        return site_filter(query.filters, snapshot, index, entity=query.entity, hidden_types=hidden_types)

    def _search_follow_up(self, query: ChatQuery, snapshot: Snapshot, search: Callable[[str], Retrieval]) -> Retrieval:
        """Search as an answer does, except that no model writes a follow-up in full."""
        question, conversation = query.query or "", Conversation.from_query(query, self.resources.signer)
        languages = snapshot.head.languages
        verdict: FollowUpVerdict = detect_follow_up(question, languages) if conversation.questions else "no"
        rewrite = partial(rewrite_follow_up, question, conversation, None, Deadline(), languages)
        return search_follow_up(question, verdict, rewrite, search)

    def _rows(self, retrieval: Retrieval, head: Head, top_k: int) -> list[SearchRow]:
        return [
            {
                "rank": rank,
                "score": round(c.evidence, 4),
                "url": self.resources.index.public_url(c.chunk, head),
                "chapter": c.chunk.chapter_title,
                "section": c.chunk.section_heading,
                "heading_path": list(c.chunk.heading_path),
                "source_file_path": c.chunk.source_file_path,
                "chunk_id": c.chunk.chunk_id,
                "text": c.chunk.text,
            }
            for rank, c in enumerate(retrieval.candidates[:top_k], 1)
        ]


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
