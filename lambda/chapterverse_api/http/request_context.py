"""Returns the service, the deadline and the possible origins of the reader's page for a route's request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request

from chapterverse_api.deadline import Deadline

if TYPE_CHECKING:
    from chapterverse_api.service import Service


def get_service(app: FastAPI) -> Service:
    """Return the service of an application, `request.app` in a route. It opens at the first call.

    Raises:
        ChapterVerseError: it can't be opened.
    """
    load: Callable[[], Service] = app.state.service
    return load()


def get_deadline(request: Request) -> Deadline:
    """Return the time at which the answer must end: on Lambda before the function does."""
    return Deadline.for_lambda(request.scope.get("aws.context"))


def get_origins(request: Request) -> tuple[str, str]:
    """Return the origins that the reader's page may have: the one that the guard has checked, and this service's."""
    return request.headers.get("origin", ""), str(request.base_url)
