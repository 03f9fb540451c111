"""One question on its way to an answer: deadline, models, conversation, sources, log."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import get_args
from uuid import uuid4

from chapterverse.calibration import read_weights
from chapterverse.errors import BudgetSpent, IndexFault, ProviderError
from chapterverse.store import Snapshot
from chapterverse.text.markdown import plain
from chapterverse_api import log, rejections
from chapterverse_api.answer.event import AnswerGiven
from chapterverse_api.answer.resources import Models, Resources
from chapterverse_api.contract import ChatQuery, ChatResponse, Events, Mode, SourceChunk, ToolUse
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import ShownDraft
from chapterverse_api.draft.requests import GenerationRequest, TurnTools, estimate_tokens
from chapterverse_api.log import QueryProgress
from chapterverse_api.search.passages import FoundSources, Omission
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchResources, primary
from chapterverse_api.search.sources import find_selection, find_sources

#: Seconds in which a turn must end, its storage included: API Gateway ends a request after 29.
TURN_SECONDS = 28.0
#: Addresses of sections in a log line.
_MAX_LOGGED_SECTIONS = 5


@dataclass(slots=True)
class IdfLookup:
    """Returns the idf of a text's terms in the index; nothing without an index or after it failed.

    Attributes:
        has_failed: whether the index could not be read. It is not tried again.
    """

    snapshot: Snapshot | None
    has_failed: bool = False

    def __call__(self, text: str) -> Mapping[int, float]:
        if self.snapshot is not None and not self.has_failed:
            try:
                return read_weights(text, self.snapshot.head.languages, self.snapshot)
            except IndexFault:
                self.has_failed = True
        return {}


@dataclass(frozen=True, slots=True)
class Sources:
    """What an answer is made from.

    Attributes:
        found: what the search found, which stays as it is.
        request: the question and the passages, those that tools found as the last ones.
        shown: the passages as the reader sees them, with the same ids.
        language: BCP 47 tag of our own words around the answer.
        idf: weighs the words of the answer.
        tool_uses: each call of a tool, in order.
        tool_failure: a sentence about the tools that failed; None if none did.
    """

    found: FoundSources
    request: GenerationRequest
    shown: tuple[SourceChunk, ...]
    language: str
    idf: IdfLookup
    tool_uses: tuple[ToolUse, ...] = ()
    tool_failure: str | None = None

    @property
    def mode(self) -> Mode:
        return "selected_text" if self.request.selected else "rag"

    @property
    def snapshot(self) -> Snapshot | None:
        """The index that the passages are from; None if it could not be read for a selection."""
        return self.found.snapshot

    @property
    def retrieval(self) -> Retrieval | None:
        """The search results that the passages were chosen from; None without a search."""
        return self.found.retrieval

    @property
    def retrieval_used(self) -> bool:
        return bool(self.retrieval or self.found.winner)

    @property
    def other_language(self) -> bool:
        """Whether the passages are in other languages than the reader's."""
        return self.retrieval is not None and self.retrieval.other_language

    @property
    def documents(self) -> Sources:
        """The sources without what tools found."""
        count = len(self.request.passages) - self.request.from_tools
        request = replace(self.request, passages=self.request.passages[:count], from_tools=0)
        return replace(self, request=request, shown=self.shown[:count])

    @property
    def may_be_quoted(self) -> bool:
        """Whether the passages may answer without a model that judges them."""
        return bool(self.request.passages) and (self.retrieval is None or self.retrieval.may_be_quoted)


@dataclass(slots=True)
class Turn:
    """One question on its way to an answer.

    Attributes:
        origins: addresses that the reader's page may be of, besides the site's own.
        tools: the tools of the site's owner that the model may call before it answers.
        models: those that its level of the budget allows.
        conversation: the messages before, as far as signatures or stored turns prove them.
        progress: the question's states, its id and time, and the conversation that it is of.
        stages: seconds that each part took.
        sources: those of the documentation, and then also what tools found.
        draft: what was shown; None if nothing was drafted, as in a refusal for want of evidence.
    """

    query: ChatQuery
    resources: Resources
    deadline: Deadline
    origins: Collection[str]
    tools: TurnTools | None
    models: Models
    conversation: Conversation
    progress: QueryProgress
    stages: dict[str, float] = field(default_factory=dict)
    sources: Sources = field(init=False)
    draft: ShownDraft | None = None

    @classmethod
    def open(
        cls,
        query: ChatQuery,
        resources: Resources,
        *,
        deadline: Deadline | None = None,
        origins: Collection[str] = (),
        models: Models | None = None,
        tools: TurnTools | None = None,
    ) -> Turn:
        """Begin the turn of a question: start its time, and read a stored conversation from the database.

        Args:
            deadline: `deadline.TOTAL_SECONDS` from now if omitted.
            models: those that it may use (see `Resources.reserving`); all without a limit if omitted.
        """
        turn_id, threads = uuid4().hex, resources.threads
        # It suffices to continue a thread or to delete it, so nobody can guess it.
        thread_id = query.thread_id or (secrets.token_hex(16) if threads else None)
        # Made first: its time begins now.
        progress = QueryProgress(turn_id, turn_id, thread_id)
        if threads and query.thread_id:
            conversation = threads.continue_conversation(query.thread_id, query, resources.signer)
        else:
            conversation = Conversation.from_query(query, resources.signer)
        return cls(
            query=query,
            resources=resources,
            deadline=deadline or Deadline(),
            origins=origins,
            tools=tools,
            models=models or resources.unlimited_models,
            conversation=conversation,
            progress=progress,
        )

    def snapshot(self) -> Snapshot:
        """Return the index to answer from: in the docs version of the query, or that of the reader's page.

        Raises:
            InputError: there is no such version, or the page is of another site.
            IndexFault: there is no index that can be read.
        """
        index = self.resources.index
        snapshot = index.snapshot(self.query.docs_version, self.query.page_url)
        index.check_page(self.query.page_url, snapshot.head, self.origins)
        return snapshot

    def search(self) -> Sources:
        """Find the sources, and make the request to a generator of them.

        Raises:
            InputError: as `snapshot`; or a filter names no known field.
            IndexFault: the index can't be read, and the question is about no selection.
        """
        query, models = self.query, self.models
        resources = SearchResources(
            index=self.resources.index,
            settings=self.resources.settings,
            embedder=models.embedder,
            reranker=models.reranker,
            reading_model=models.reading_model,
            deadline=self.deadline,
            progress=self.progress,
            writer=models.writer,
        )
        if query.selected_text:
            snapshot = None
            # The reader's own text needs no index.
            with suppress(IndexFault):
                snapshot = self.snapshot()
            found = find_selection(query, self.conversation, snapshot, resources, only_quotes=models.only_quotes)
        else:
            found = find_sources(query, self.conversation, self.snapshot(), resources)
        self.sources = self._make_sources(found)
        self._log_sources()
        return self.sources

    def _make_sources(self, found: FoundSources) -> Sources:
        """Return the sources with the request. The owner's persona may have another language than the reader.

        Every answer is in the language of its passages, because a translation could not be checked against them.
        """
        query, conversation, retrieval = self.query, self.conversation, found.retrieval
        language, head = found.persona.language or found.language, found.snapshot.head if found.snapshot else None
        is_readable = primary(language) == primary(found.source_language)
        request = GenerationRequest(
            question=query.query or "",
            words=found.words,
            passages=tuple(found.passages),
            language=language if is_readable else found.source_language,
            may_help=retrieval is not None and retrieval.may_help,
            compares=retrieval is not None and retrieval.compares,
            sides=tuple(p.id for p in found.passages if retrieval and p.chunk_id in retrieval.sides),
            selected=found.selected,
            selection=found.selection,
            history=conversation.messages,
            summary=conversation.summary,
            recalled=conversation.recalled,
            context=query.user_context or "",
            memories=tuple(plain(added.chunk.text) for added in found.looked_up if not added.chunk.url),
            persona=found.persona,
            documentation=str(head.scope) if retrieval and head else "",
            deadline=self.deadline,
        )
        return Sources(found, request, tuple(found.shown), language, IdfLookup(found.snapshot))

    def _log_sources(self) -> None:
        """Log the results of each part, and the omitted candidates. A part that failed logs only its error."""
        sources, request, retrieval = self.sources, self.sources.request, self.sources.retrieval
        failures, timings = (retrieval.failures, retrieval.timings) if retrieval else ({}, {})
        self.stages |= timings
        for part, error in failures.items():
            self.log_failure(part, error)
        if "embed" in timings and "embedder" not in failures:
            self.log("embedding_generated", seconds=timings["embed"])
        passages = len(request.passages)
        self.log("retrieval_performed", mode=sources.mode, candidates=retrieval.total if retrieval else passages)
        evidence = retrieval.evidence if retrieval else max((p.evidence for p in request.passages), default=0.0)
        algorithm = retrieval.algorithm if retrieval else None
        self.log("results_ranked", passages=passages, evidence=round(evidence, 4), algorithm=algorithm)
        if retrieval:
            reasons, floor = Counter(sources.found.omissions.values()), retrieval.calibration.floor
            omitted = {f"omitted_{stage}": reasons[stage] for stage in get_args(Omission)}
            self.log("results_filtered", candidates=len(retrieval.candidates), floor=floor, **omitted)
        self.log(
            "context_prepared",
            passages=passages,
            tokens=round(sum(estimate_tokens(passage.section) for passage in request.passages)),
            messages=len(request.history),
            summary=bool(request.summary),
            user_context=len(request.context),
        )

    @property
    def id(self) -> str:
        return self.progress.id

    @property
    def thread_id(self) -> str | None:
        """The conversation; None if the query names none and none are kept."""
        return self.progress.thread_id

    @property
    def seconds(self) -> float:
        """Seconds since the turn began."""
        return self.progress.seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the block that answers. Log the question, and note that the turn failed if the block raises."""
        question, selection = self.query.query or "", self.query.selected_text or ""
        # The words are logged only if the operator has enabled that.
        words = {"question": question} if self.resources.settings.log_questions else {}
        self.log("query_received", characters=len(question), selected=len(selection), **words)
        self.progress.log_created()
        try:
            yield
        except Exception:
            self.progress.enter("failed")
            raise

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add how long the block takes to `stages`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] = self.stages.get(stage, 0.0) + time.perf_counter() - started

    def log(self, name: log.EventName, **fields: log.FieldValue) -> None:
        log.event(name, turn_id=self.id, thread_id=self.thread_id, execution_time=self.seconds, **fields)

    def log_failure(self, part: str, error: ProviderError) -> None:
        """Log that a part failed: `embedder`, `reranker`, `generator` or `checker`."""
        # The answer names the budget, and no part failed.
        if not isinstance(error, BudgetSpent):
            rejections.report(error, turn_id=self.id, thread_id=self.thread_id, execution_time=self.seconds, part=part)

    def explain_degradation(self, *failures: str | None, remembered: bool = True) -> str | None:
        """Return why not everything went as configured, the failures first; None if it did.

        Args:
            remembered: whether turns of this kind are kept: plans are not, so they lose nothing without a database.
        """
        sources, threads = self.sources, self.resources.threads
        reasons = [*failures, sources.tool_failure, self.models.spending.reason]
        reasons.append(sources.retrieval.degraded if sources.retrieval else None)
        reasons.append(threads.degraded if threads and remembered else None)
        # A selection needs no index.
        if sources.idf.has_failed and sources.retrieval_used:
            reasons.append("The index could not be reached any more; all words of the answer were weighed alike.")
        return " ".join(filter(None, reasons)) or None

    def end(self, response: ChatResponse) -> Events:
        """Yield the response as the last event, then pass it on, so that readers don't wait for a database."""
        self._log_response(response)
        seconds = self.seconds
        try:
            yield response
        finally:
            answer = self._answer_given(response, seconds)
            # Also if the reader hangs up as soon as the answer is there, as the widget does.
            for listen in self.resources.listeners:
                try:
                    listen(answer)
                # Nothing that is done with an answer may take it back.
                except Exception as error:
                    self.log("error", code="event_failed", **log.error_origin(error))

    def _answer_given(self, response: ChatResponse, seconds: float) -> AnswerGiven:
        models, winner = self.models, self.sources.found.winner
        return AnswerGiven(
            query=self.query,
            response=response,
            thread_id=self.thread_id,
            seconds=seconds,
            stages=self.stages,
            is_degraded=response.degraded_reason is not None or models.spending.level != "full",
            entry_id=winner.entry_id if winner else None,
            writer=models.writer,
            seconds_left=max(0.0, TURN_SECONDS - self.seconds),
        )

    def _log_response(self, response: ChatResponse) -> None:
        """Log the figures of a response, and its words only if the operator has enabled that."""
        checks = Counter(segment.check for segment in response.segments if segment.kind != "framing")
        words = {"answer": response.response} if self.resources.settings.log_answers else {}
        self.log(
            "response_summary",
            characters=len(response.response),
            segments=len(response.segments),
            confirmed=checks["confirmed"],
            unconfirmed=checks["unconfirmed"],
            confidence=response.grounding_confidence,
            **words,
        )
        sections = response.sources_cited or [place.url for place in response.nearest]
        self.complete(response.status, len(response.sources_cited), sections[:_MAX_LOGGED_SECTIONS])

    def complete(self, status: str, cited: int, sections: list[str] | None = None) -> None:
        """Note that the turn is over; log its status, the sections cited or else nearest, and what its models cost."""
        spending = self.models.spending
        self.progress.enter("completed")
        figures = {"level": spending.level, "cost_usd": spending.usd}
        self.log("response_sent", status=status, cited=cited, sections=sections or [], **figures)
