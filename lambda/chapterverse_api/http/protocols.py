"""The protocol of the service that the routes call."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from chapterverse.settings import Settings
from chapterverse_api.contract import ChatQuery, Events, Feedback, RetrievalRequest, RetrievalResponse, ServiceStatus
from chapterverse_api.deadline import Deadline

if TYPE_CHECKING:
    from chapterverse_api.answering.plans.contract import PlanRequest, PlanResponse
    from chapterverse_api.answering.resources import Resources
    from chapterverse_api.conversation.threads import Threads


class ChatService(Protocol):
    """Answers requests. Every method blocks, runs in a worker thread and raises the errors of `chapterverse.errors`."""

    @property
    def settings(self) -> Settings: ...

    @property
    def site(self) -> str:
        """Address of the documentation, "" while unknown."""
        ...

    @property
    def resources(self) -> Resources:
        """What the tools and a warm start use."""
        ...

    @property
    def threads(self) -> Threads | None:
        """The stored conversations; None if none are stored."""
        ...

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        """Yield the parts of an answer; the last is the whole `ChatResponse`. Steps may run in different threads.

        Args:
            deadline: when the turn must end.
            origins: further addresses that the reader's page may be on, besides the site's own.
        """
        ...

    def plan_step(self, request: PlanRequest, *, deadline: Deadline, origins: Collection[str] = ()) -> PlanResponse:
        """Return a step of a plan. The arguments mean the same as in `chat`."""
        ...

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse: ...

    def rate(self, rating: Feedback) -> None:
        """Log and store a reader's rating.

        Raises:
            RecordsFault: it could not be stored, and is in the log.
        """
        ...

    def status(self) -> ServiceStatus: ...
