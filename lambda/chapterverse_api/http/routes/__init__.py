"""One file per resource, and the protocol of the service that routes call."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from fastapi import Request

from chapterverse.settings import Settings
from chapterverse_api.contract import ChatQuery, Events, Feedback, RetrievalRequest, RetrievalResponse, ServiceStatus
from chapterverse_api.deadline import Deadline


class Service(Protocol):
    """Answers requests. Every method blocks and runs in a worker thread; errors are those of `chapterverse.errors`."""

    @property
    def settings(self) -> Settings: ...

    @property
    def site(self) -> str:
        """Address of the documentation, "" while unknown."""
        ...

    def chat(self, query: ChatQuery, *, deadline: Deadline | None = None, origins: Collection[str] = ()) -> Events:
        """Yield the parts of an answer; the last is the whole `ChatResponse`. Steps may run in different threads.

        Args:
            deadline: when the turn must end.
            origins: further addresses that the reader's page may be on, besides the site's own.
        """
        ...

    def retrieve(self, request: RetrievalRequest) -> RetrievalResponse: ...

    def rate(self, rating: Feedback) -> None:
        """Log and store a reader's rating.

        Raises:
            RecordsFault: it could not be stored, and is in the log.
        """
        ...

    def status(self) -> ServiceStatus: ...


def service(request: Request) -> Service:
    """Return the service, which opens at the first call.

    Raises:
        ChapterVerseError: it can't be opened.
    """
    opened: Callable[[], Service] = request.app.state.service
    return opened()
