"""One question and its answer: deadline, conversation, log, and the response's head."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from chapterverse.errors import ProviderError
from chapterverse.knowledge.questions import entry_id
from chapterverse.model import Chunk, utc_now
from chapterverse.store import Snapshot
from chapterverse_api import rejections
from chapterverse_api.answering.models import TurnModels
from chapterverse_api.answering.resources import Resources
from chapterverse_api.budget.daily_budget import BudgetSpent, TurnBudget
from chapterverse_api.contract import ChatQuery, ChatResponse, Events
from chapterverse_api.conversation.history import Conversation
from chapterverse_api.conversation.threads import KEEPING_SECONDS, new_thread_id
from chapterverse_api.conversation.transcript import signed_question
from chapterverse_api.deadline import Deadline
from chapterverse_api.observability import log, metrics
from chapterverse_api.observability.query_state import QueryProgress

#: Seconds in which a turn must end, its storage included: API Gateway ends a request after 29.
TURN_SECONDS = 28.0
#: Addresses of sections in a log line.
_MAX_LOGGED_SECTIONS = 5


@dataclass(slots=True)
class Turn:
    """One question on its way to an answer.

    Attributes:
        origins: addresses that the reader's page may be of, besides the site's own.
        models: the models that its level of the budget allows.
        conversation: the messages before, as far as signatures or stored turns prove them.
        stages: seconds that each part took.
        thread_id: the conversation; None if the query names none and none are stored.
        progress: the question's states.
    """

    query: ChatQuery
    resources: Resources
    deadline: Deadline
    origins: Collection[str]
    models: TurnModels
    conversation: Conversation
    thread_id: str | None
    progress: QueryProgress
    id: str
    started: float
    stages: dict[str, float] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        query: ChatQuery,
        resources: Resources,
        *,
        deadline: Deadline | None = None,
        origins: Collection[str] = (),
        turn_budget: TurnBudget | None = None,
    ) -> Turn:
        """Begin the turn of a question: start its time, and read a stored conversation from the database.

        Args:
            deadline: `deadline.TOTAL_SECONDS` from now if omitted.
            turn_budget: the most that the models may cost; no limit if omitted.
        """
        started, turn_id = time.perf_counter(), uuid4().hex
        thread_id = query.thread_id or (new_thread_id() if resources.threads else None)
        return cls(
            query=query,
            resources=resources,
            deadline=deadline or Deadline(),
            origins=origins,
            models=TurnModels.for_budget(resources.models, turn_budget),
            conversation=_recall_conversation(query, resources),
            thread_id=thread_id,
            progress=QueryProgress(turn_id, turn_id, thread_id, started=started),
            id=turn_id,
            started=started,
        )

    @property
    def degraded(self) -> str | None:
        """Why the conversation is not stored; None if it is, or is not meant to be."""
        return self.resources.threads.degraded if self.resources.threads else None

    def snapshot(self) -> Snapshot:
        """Return the index to answer from: in the docs version of the query, or that of the reader's page.

        Raises:
            InputError: there is no such version, or the page is of another site.
            IndexFault: there is no index that can be read.
        """
        index = self.resources.index
        snapshot = index.snapshot(self.query.docs_version, self.query.page_url)
        index.check_page(self.query.page_url, snapshot.head, (*self.origins,))
        return snapshot

    @property
    def seconds(self) -> float:
        return round(time.perf_counter() - self.started, 6)

    def log(self, name: log.EventName, **fields: log.FieldValue) -> None:
        log.event(name, turn_id=self.id, thread_id=self.thread_id, execution_time=self.seconds, **fields)

    def log_query(self) -> None:
        """Log the length of the question, and its words only if the operator has enabled that."""
        question, selection = self.query.query or "", self.query.selected_text or ""
        words = {"question": question} if self.resources.settings.log_questions else {}
        self.log("query_received", characters=len(question), selected=len(selection), **words)
        self.progress.log_created()

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Add how long the block takes to `stages`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] = self.stages.get(stage, 0.0) + time.perf_counter() - started

    def log_failure(self, part: str, error: ProviderError) -> None:
        """Log that a part failed: `embedder`, `reranker`, `generator` or `checker`."""
        # The answer names the budget, and no part failed.
        if isinstance(error, BudgetSpent):
            return
        rejections.report(error, turn_id=self.id, thread_id=self.thread_id, execution_time=self.seconds, part=part)

    @contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Note that the turn failed if the block raises."""
        try:
            yield
        except Exception:
            self.progress.enter("failed")
            raise

    def end(self, response: ChatResponse, entry: Chunk | None = None) -> Events:
        """Yield the response as the last event, then store the turn, so that readers don't wait for the database.

        Args:
            entry: the FAQ entry that answered.
        """
        self._log_response(response)
        metrics.measure_turn(
            seconds=self.seconds,
            stages=self.stages,
            not_in_docs=response.status == "not_in_docs",
            degraded=response.degraded_reason is not None or self.models.turn_budget.level != "full",
        )
        try:
            yield response
        finally:
            # Also if the reader hangs up as soon as the answer is there, as the widget does.
            self._keep(response, entry)

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
        budget = self.models.turn_budget
        self.progress.enter("completed")
        figures = {"level": budget.level, "cost_usd": budget.usd}
        self.log("response_sent", status=status, cited=cited, sections=sections or [], **figures)

    def _keep(self, response: ChatResponse, entry: Chunk | None) -> None:
        """Store the turn in its thread, and the match of its FAQ entry, if threads are stored."""
        threads = self.resources.threads
        if threads and self.thread_id:
            seconds = max(0.0, min(KEEPING_SECONDS, TURN_SECONDS - self.seconds))
            if entry:
                threads.match(entry_id(entry), self.thread_id)
            threads.remember(self.thread_id, self.query, response, self.models.writer, seconds=seconds)

    def make_response(self, text: str, **fields: Any) -> ChatResponse:
        """Return the response with turn id, time (UTC), duration in seconds and signature filled in."""
        question = signed_question(self.query)
        return ChatResponse(
            response=text,
            turn_id=self.id,
            thread_id=self.thread_id,
            timestamp=utc_now("milliseconds"),
            execution_time=self.seconds,
            signature=self.resources.signer.sign(self.id, self.conversation.previous, question, text),
            **fields,
        )


def _recall_conversation(query: ChatQuery, resources: Resources) -> Conversation:
    """Return the messages that a query sends, and the turns and the summary that are kept of its thread."""
    threads, settings = resources.threads, resources.settings
    thread = threads.recall(query.thread_id) if threads and query.thread_id else None
    if thread and not settings.enable_turn:
        thread = replace(thread, turns=())
    if thread and not settings.enable_summary:
        thread = replace(thread, summary="")
    return Conversation.from_query(query, resources.signer, thread, settings.turn_top_k)
