"""`DELETE /v1/threads/{thread_id}`: forgets a kept conversation. Absent where none are kept."""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter, Request, Response

from chapterverse_api.contract import ThreadId
from chapterverse_api.records import RecordsFault
from chapterverse_api.rejections import Rejection, documented, of_status

router = APIRouter(prefix="/v1")


class Forgetful(Protocol):
    """What this route needs of the service's `threads`."""

    def forget(self, thread_id: str) -> bool:
        """Remove a conversation; return whether there was one. Blocks."""
        ...


@router.delete("/threads/{thread_id}", status_code=204, responses=documented(403, 422, 500, 503))
def forget(thread_id: ThreadId, request: Request) -> Response:
    """Forget a conversation. Whoever knows its id may do so; whether there was one is not told."""
    threads: Forgetful | None = request.app.state.service().threads
    if threads is None:
        raise of_status(404)
    try:
        threads.forget(thread_id)
    except RecordsFault as error:
        raise unavailable() from error
    return Response(status_code=204)


def unavailable() -> Rejection:
    """Return what a reader is told where the database of the conversations fails."""
    return Rejection(
        503, "records_unavailable", "The conversations that are kept can't be reached right now.", retryable=True
    )
