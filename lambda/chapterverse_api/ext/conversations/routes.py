"""The route that forgets a conversation. It is absent without a database of conversations."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from chapterverse_api.contract import Name
from chapterverse_api.http.answers import get_service
from chapterverse_api.http.routes import reaching_records
from chapterverse_api.rejections import from_status, openapi_entries

router = APIRouter(prefix="/v1")


@router.delete("/threads/{thread_id}", status_code=204, responses=openapi_entries(403, 422, 500, 503))
def forget(thread_id: Name, request: Request) -> Response:
    """Forget a conversation. Its id is enough to do so; the response doesn't reveal whether it existed."""
    threads = get_service(request.app).resources.threads
    if threads is None:
        raise from_status(404)
    with reaching_records():
        threads.forget(thread_id)
    return Response(status_code=204)
