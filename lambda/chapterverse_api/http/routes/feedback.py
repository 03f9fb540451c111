"""`POST /v1/feedback`: takes a rating, logs it, and stores it if conversations are stored."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from chapterverse_api.contract import Feedback
from chapterverse_api.http.guard import rate
from chapterverse_api.http.guard.body import GuardedRoute
from chapterverse_api.http.request_context import get_service
from chapterverse_api.http.routes.threads import unavailable
from chapterverse_api.records.protocols import RecordsFault
from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1", route_class=GuardedRoute)


@router.post("/feedback", status_code=204, responses=openapi_entries(400, 403, 413, 415, 422, 429, 500, 503))
def feedback(rating: Feedback, request: Request) -> Response:
    """Say whether an answer helped, and why not. A second rating of a turn takes the place of the first."""
    rate.check(request)
    try:
        get_service(request.app).rate(rating)
    except RecordsFault as error:
        # It is logged, but the owner reads the database, so the reader may try again.
        raise unavailable() from error
    return Response(status_code=204)
