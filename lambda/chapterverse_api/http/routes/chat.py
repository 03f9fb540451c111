"""`POST /v1/chat`: answers a question with citations, whole or as a stream."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from chapterverse_api.contract import ChatQuery, ChatResponse
from chapterverse_api.http import sse
from chapterverse_api.http.guard import rate
from chapterverse_api.http.guard.body import GuardedRoute
from chapterverse_api.http.json_answer import respond_with_json
from chapterverse_api.http.request_context import get_deadline, get_origins, get_service
from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1", route_class=GuardedRoute)

_STREAM: dict[str, Any] = {
    "description": "The whole answer, or a stream of it when `Accept` names `text/event-stream`",
    "content": {
        sse.MEDIA_TYPE: {
            "schema": {
                "type": "string",
                "description": "Events `meta` (turn_id, mode, sources), `tool` (id, name, query for a search; sent when"
                " it starts, and again with ok) and `delta` (a segment), any number of times, then `final` (a"
                " ChatResponse, whose sources may be more than those of `meta`) or `error` (code, message, retryable)."
                " A stream without one of these failed.",
            }
        }
    },
}


@router.post(
    "/chat",
    response_model=ChatResponse,
    responses={200: _STREAM, **openapi_entries(400, 403, 413, 415, 422, 429, 500, 503)},
)
def chat(query: ChatQuery, request: Request) -> Response:
    """Answer a question, or explain a selection, from the documentation."""
    rate.check(request)
    deadline = get_deadline(request)
    events = get_service(request.app).chat(query, deadline=deadline, origins=get_origins(request))
    streamed = sse.wants_stream(request.headers.get("accept", ""))
    return sse.EventStream(events, deadline) if streamed else respond_with_json(events, deadline)
