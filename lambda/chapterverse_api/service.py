"""The operations of the API on one set of resources: chat, retrieve, rate, status."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from chapterverse.errors import ChapterVerseError
from chapterverse.filters import version_of
from chapterverse.model import Chunk, Head
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api import rejections
from chapterverse_api.answering.models import TurnModels
from chapterverse_api.answering.pipeline import answer_query
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.turn_cost import max_search_cost, max_turn_cost
from chapterverse_api.contract import (
    ChatQuery,
    ChunkImage,
    ChunkTable,
    Events,
    Feedback,
    IndexStatus,
    RetrievalRequest,
    RetrievalResponse,
    RetrievalStats,
    RetrievedChunk,
    ServiceStatus,
)
from chapterverse_api.conversation import feedback
from chapterverse_api.conversation.threads import Threads
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.protocols import ToolCaller
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.observability import log
from chapterverse_api.observability.query_state import QueryProgress, search_progress
from chapterverse_api.retrieval.candidates import Candidate
from chapterverse_api.retrieval.results import Retrieval
from chapterverse_api.retrieval.scope import site_filter
from chapterverse_api.retrieval.search import SearchRequest, rerank, retrieve

if TYPE_CHECKING:
    from chapterverse_api.answering.plans.contract import PlanRequest, PlanResponse
    from chapterverse_api.answering.tool_use import TurnTools
    from chapterverse_api.tools.site_tools import SiteTools


@dataclass(frozen=True, slots=True)
class Service:
    """Answers within the day's budget. Implements `ChatService`."""

    resources: Resources
    tools: SiteTools | None = None

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Return the service that these settings describe. Raises as `Resources.open` does."""
        resources = Resources.open(settings)
        return cls(resources, _open_tools(resources) if settings.tools else None)

    @property
    def settings(self) -> Settings:
        return self.resources.settings

    @property
    def site(self) -> str:
        return self.resources.index.address

    @property
    def threads(self) -> Threads | None:
        return self.resources.threads

    @property
    def key_refused(self) -> bool:
        return self.resources.key_refused

    def inherit_from(self, before: Service) -> Self:
        """Return this service with the counters and keys of `before`; see `Resources.inherit_from`."""
        return replace(self, resources=self.resources.inherit_from(before.resources))

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        """Yield the parts of an answer; the last is the whole `ChatResponse`. See `pipeline.answer_query`."""
        resources, deadline = self.resources, deadline or Deadline()
        keeps, tools = resources.threads is not None, self.turn_tools(deadline)
        ceiling = max_turn_cost(query, resources.models.prices, keeps=keeps, tools=tools is not None)
        with resources.budget.setting_aside(ceiling) as budget:
            yield from answer_query(
                query, resources, deadline=deadline, origins=origins, turn_budget=budget, tools=tools
            )

    def plan_step(self, request: PlanRequest, *, deadline: Deadline, origins: Collection[str] = ()) -> PlanResponse:
        """Return a step of a plan; see `plans.requests.respond`."""
        # Loaded where somebody asks for a plan.
        from chapterverse_api.answering.plans.requests import respond

        resources, tools = self.resources, self.turn_tools(deadline)
        if request.query is None:
            return respond(request, resources, deadline=deadline, tools=tools)
        ceiling = max_turn_cost(
            request.as_query(), resources.models.prices, keeps=False, tools=tools is not None, plan=True
        )
        with resources.budget.setting_aside(ceiling) as budget:
            return respond(request, resources, deadline=deadline, origins=origins, turn_budget=budget, tools=tools)

    def turn_tools(self, deadline: Deadline) -> TurnTools | None:
        """Return the tools that a turn may use; None where the site has none."""
        return self.tools.of_turn(self, deadline) if self.tools else None

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse:
        """Return the best chunks, unexpanded.

        Raises:
            InputError: there is no such version, or the embedding has another size.
            IndexFault: no index can be read.
        """
        with search_progress() as progress:
            return self._respond(request, progress)

    def _respond(self, request: RetrievalRequest, progress: QueryProgress) -> RetrievalResponse:
        """Search, log what the threshold and the limit left out, and return the response."""
        index = self.resources.index
        snapshot = index.snapshot(version_of(request.filters))
        retrieval = self._search(request, snapshot, progress)
        for part, error in retrieval.failures.items():
            rejections.report(error, part=part, query_id=progress.id)
        # Without words the score is the cosine.
        scored = [(c, c.evidence if request.query else _cosine(c)) for c in retrieval.candidates]
        over = [(c, score) for c, score in scored if score >= request.threshold]
        best = [_to_retrieved_chunk(c, score, index, snapshot.head) for c, score in over[: request.top_k]]
        log.event(
            "results_filtered",
            turn_id=None,
            execution_time=progress.seconds,
            query_id=progress.id,
            candidates=len(scored),
            floor=request.threshold,
            omitted_evidence=len(scored) - len(over),
            omitted_limit=len(over) - len(best),
        )
        progress.enter("completed")
        return RetrievalResponse(
            query_id=progress.id,
            created_at=progress.created_at,
            processed_at=progress.processed_at,
            state=progress.state,
            model=progress.model,
            attempts=progress.attempts,
            retrieved_chunks=best,
            execution_time=progress.seconds,
            retrieval_stats=RetrievalStats(
                total_candidates=retrieval.total,
                search_threshold=request.threshold,
                collection_name=snapshot.head.site,
                timings={stage: round(seconds, 6) for stage, seconds in retrieval.timings.items()},
            ),
            ranking_algorithm=retrieval.algorithm,
        )

    def _search(self, request: RetrievalRequest, snapshot: Snapshot, progress: QueryProgress) -> Retrieval:
        """Search and rerank within the day's budget."""
        resources, question = self.resources, request.query
        search = SearchRequest(question, request.embedding, site_filter(request.filters, snapshot, resources.index))
        with resources.budget.setting_aside(max_search_cost(question or "", resources.models.prices)) as budget:
            models = TurnModels.of(resources.models, budget)
            retrieval = retrieve(snapshot, models.embedder, search, progress)
            return rerank(retrieval, question, models.reranker) if models.reranker and question else retrieval

    def rate(self, rating: Feedback) -> None:
        """Log a reader's rating, and store it if turns are stored; see `feedback.take`."""
        feedback.take(rating, self.resources.threads, log_comment=self.settings.log_questions)

    def status(self) -> ServiceStatus:
        """Return the state of indexes, models and budget. A broken index is reported, not raised."""
        index, models = self.resources.index, self.resources.models
        heads, sound, embedder = list[Head](), False, self.settings.embedder
        with contextlib.suppress(ChapterVerseError):
            heads = index.live_heads()
            cards = [models.card(h) for h in heads]
            embedder = cards[0].name if cards else embedder
            fits = all(h.embedder.fingerprint == card.fingerprint for h, card in zip(heads, cards, strict=True))
            sound = fits and index.intact(heads)
        degraded = ([] if heads and sound else ["index"]) + [part for part, c in models.circuits.items() if c.open]
        degraded += [] if self.resources.budget.level == "full" else ["budget"]
        # A model that calls none leaves the site's tools unused.
        degraded += ["tools"] if self.tools and not isinstance(models.generator, ToolCaller) else []
        degraded += ["records"] if self.threads and not self.threads.works else []
        return ServiceStatus(
            status="degraded" if degraded else "ok",
            indexes=[_index_status(h) for h in heads],
            models={
                "embedder": embedder,
                "reranker": self.settings.reranker,
                "generator": models.generator.name,
                "checker": models.checker.name if models.checker else self.settings.checker,
            },
            degraded=degraded,
            mcp=self.settings.mcp,
        )


def _open_tools(resources: Resources) -> SiteTools:
    # Other sites do without them.
    from chapterverse_api.tools.site_tools import SiteTools

    if not isinstance(resources.models.generator, ToolCaller):
        message = f"CHAPTERVERSE_TOOLS is set, but the generator {resources.models.generator.name} calls no tools."
        log.event("error", turn_id=None, code="tools_not_offered", message=message)
    return SiteTools.open(resources.settings)


def _cosine(candidate: Candidate) -> float:
    return min(1.0, max(0.0, candidate.components["cosine"]))


def _to_retrieved_chunk(candidate: Candidate, score: float, index: SiteIndex, head: Head) -> RetrievedChunk:
    chunk = candidate.chunk
    return RetrievedChunk(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        chapter_title=chunk.chapter_title,
        section_heading=chunk.section_heading,
        heading_path=list(chunk.heading_path),
        chunk_index=chunk.chunk_index,
        source_file_path=chunk.source_file_path,
        url=index.public_url(chunk, head),
        language=chunk.language,
        version=chunk.version,
        source_domain=chunk.source_domain,
        type=chunk.type,
        content_type=chunk.content_type,
        created_at=chunk.created_at or None,
        tags=list(chunk.tags),
        images=[ChunkImage(url=i["url"], alt=i["alt"], title=i.get("title")) for i in chunk.images],
        tables=_tables(chunk),
        structured_data=[dict(one) for one in chunk.structured_data],
        score=round(score, 4),
        components={"rank": round(candidate.score, 4), **{k: round(v, 4) for k, v in candidate.components.items()}},
    )


def _tables(chunk: Chunk) -> list[ChunkTable]:
    # A chat doesn't need it.
    from chapterverse.text.tables import tables

    captions = dict(chunk.captions)
    return [
        ChunkTable(
            name=captions.get(table.line) or chunk.section_heading,
            headers=list(table.headers),
            rows=[list(row) for row in table.rows],
        )
        for table in tables(chunk.text)
    ]


def _index_status(head: Head) -> IndexStatus:
    return IndexStatus(
        site=head.site,
        version=head.version,
        generation=head.generation,
        pages=head.pages,
        chunks=head.chunks,
        published_at=head.published_at,
    )
