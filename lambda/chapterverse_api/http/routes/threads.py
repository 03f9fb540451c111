"""`DELETE /v1/threads/{thread_id}`: forgets a stored conversation. The route is absent without a database."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from chapterverse_api.contract import ThreadId
from chapterverse_api.http.request_context import get_service
from chapterverse_api.records.protocols import RecordsFault
from chapterverse_api.rejections import Rejection, from_status, openapi_entries

router = APIRouter(prefix="/v1")


@router.delete("/threads/{thread_id}", status_code=204, responses=openapi_entries(403, 422, 500, 503))
def forget(thread_id: ThreadId, request: Request) -> Response:
    """Forget a conversation. Its id is enough to do so; the response doesn't reveal whether it existed."""
    threads = get_service(request.app).threads
    if threads is None:
        raise from_status(404)
    try:
        threads.forget(thread_id)
    except RecordsFault as error:
        raise unavailable() from error
    return Response(status_code=204)


def unavailable() -> Rejection:
    """Return the rejection for a failure of the conversations' database."""
    return Rejection(
        503, "records_unavailable", "The conversations that are kept can't be reached right now.", retryable=True
    )
