"""The operations of the API on one set of resources: chat, retrieve, rate, status."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from chapterverse.extensions import load_part
from chapterverse.filters import version_of
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.resources import Resources
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import (
    ChatQuery,
    Events,
    Feedback,
    RetrievalRequest,
    ServiceStatus,
)
from chapterverse_api.deadline import Deadline
from chapterverse_api.log import search_progress
from chapterverse_api.retrieval_contract import RetrievalResponse
from chapterverse_api.search.retrieval_response import respond_with_chunks
from chapterverse_api.search.site_search import SearchRequest, order_by_models, retrieve, site_filter

if TYPE_CHECKING:
    from chapterverse_api.draft.requests import TurnTools


@dataclass(frozen=True, slots=True)
class Service:
    """Answers within the day's budget.

    Attributes:
        tools: returns those of the site's owner that one turn may use; None if there are none.
    """

    resources: Resources
    tools: Callable[[Service, Deadline], TurnTools] | None = None

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Return the service that these settings describe. Raises as `Resources.open` does."""
        resources = Resources.open(settings)
        return cls(resources, load_part("tools")(resources) if settings.tools else None)

    @property
    def settings(self) -> Settings:
        return self.resources.settings

    @property
    def site(self) -> str:
        return self.resources.index.address

    def inherit_from(self, before: Service) -> Self:
        """Return this service with the counters and keys of `before`; see `Resources.inherit_from`."""
        return replace(self, resources=self.resources.inherit_from(before.resources))

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        """Yield the parts of an answer; the last is the whole `ChatResponse`. See `answer_turn`."""
        resources, deadline = self.resources, deadline or Deadline()
        tools = self.turn_tools(deadline)
        with resources.reserving(query.query or "", drafts=True, votes=True) as models:
            yield from answer_turn(
                Turn.open(query, resources, deadline=deadline, origins=origins, models=models, tools=tools)
            )

    def turn_tools(self, deadline: Deadline) -> TurnTools | None:
        """Return the tools that a turn may use; None if the site has none."""
        return self.tools(self, deadline) if self.tools else None

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        """Return the best chunks, unexpanded.

        Raises:
            InputError: there is no such version, or the embedding has another size.
            IndexFault: no index can be read.
        """
        resources, question = self.resources, request.query
        with search_progress() as progress:
            snapshot = resources.index.snapshot(version_of(request.filters))
            search = SearchRequest(question, request.embedding, site_filter(request.filters, snapshot, resources.index))
            with resources.reserving(question or "") as models:
                retrieval = retrieve(snapshot, models.embedder, search, progress)
                retrieval = order_by_models(retrieval, question, models.reranker, models.reading_model, Deadline())
            return respond_with_chunks(request, retrieval, snapshot.head, resources.index, progress)

    def rate(self, rating: Feedback) -> None:
        """Log a reader's rating first, so that no failure loses it, and then store it if conversations are kept.

        Raises:
            RecordsFault: it could not be stored.
        """
        comment = rating.comment or ""
        # The words are logged only if the operator has enabled that.
        words: dict[str, Any] = {"comment": comment} if self.settings.log_questions and comment else {}
        log.event(
            "feedback_received",
            turn_id=rating.turn_id,
            rating=rating.rating,
            reason=rating.reason,
            characters=len(comment),
            **words,
        )
        if self.resources.threads:
            self.resources.threads.rate(rating)

    def status(self) -> ServiceStatus:
        """Return the state of indexes, models and budget; see `Resources.status`."""
        return self.resources.status(has_tools=self.tools is not None)
