"""`POST /v1/retrieve`: returns passages with scores, and no answer."""

from __future__ import annotations

from fastapi import APIRouter, Request

from chapterverse_api.contract import RetrievalRequest, RetrievalResponse
from chapterverse_api.http.guard import rate
from chapterverse_api.http.guard.body import GuardedRoute
from chapterverse_api.http.request_context import get_service
from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1", route_class=GuardedRoute)


@router.post("/retrieve", responses=openapi_entries(400, 403, 413, 415, 422, 429, 500, 503))
def retrieve(query: RetrievalRequest, request: Request) -> RetrievalResponse:
    """Return the passages that fit a question or an embedding best."""
    rate.check(request)
    return get_service(request.app).retrieve(query)
