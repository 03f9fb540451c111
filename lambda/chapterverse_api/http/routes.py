"""The routes of the API, in the order in which OpenAPI lists them, and those of the widget's files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse
from starlette.routing import Route

from chapterverse.extensions import load_part
from chapterverse.widget import bundle
from chapterverse_api.answer.event import RecordsFault
from chapterverse_api.contract import (
    ChatQuery,
    ChatResponse,
    ErrorResponse,
    Feedback,
    Health,
    RetrievalRequest,
    ServiceStatus,
)
from chapterverse_api.http import answers
from chapterverse_api.http.admission import GuardedRoute, check_rate
from chapterverse_api.http.answers import get_service
from chapterverse_api.rejections import Rejection, openapi_entries
from chapterverse_api.retrieval_contract import RetrievalResponse

router = APIRouter(prefix="/v1", route_class=GuardedRoute)

_REJECTIONS = openapi_entries(400, 403, 413, 415, 422, 429, 500, 503)
# Once, so that OpenAPI lists its schema.
_ANSWERED = {**_REJECTIONS, 500: {**_REJECTIONS[500], "model": ErrorResponse}}
_STREAM: dict[str, Any] = {
    "description": "The whole answer, or a stream of it when `Accept` names `text/event-stream`",
    "content": {
        answers.EVENT_STREAM: {
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
# File names have no version, so browsers may cache a file only as long as a stale one does no harm.
_WIDGET_CACHE = "public, max-age=300"
_SCHEMAS = {"description": "The schema of `doc_type`; without it, an object with those of all types by name."}

#: Threads for the status, separate from those for answers: anybody may request it at any rate, and each call waits if
#: the store hangs.
_STATUS_THREADS = 4
_status_limiter = RunVar[CapacityLimiter]("chapterverse-status")


class DocumentSchema(BaseModel):
    document_type: str
    schema_: dict[str, Any] = Field(alias="schema")
    fields: list[str]
    required_fields: list[str]


@router.post("/chat", response_model=ChatResponse, responses={200: _STREAM, **_ANSWERED})
def chat(query: ChatQuery, request: Request) -> Response:
    """Answer a question, or explain a selection, from the documentation."""
    check_rate(request)
    return answers.answer_request(query, request, stream=answers.wants_stream(request.headers.get("accept", "")))


@router.post("/retrieve", responses=_REJECTIONS)
def retrieve(query: RetrievalRequest, request: Request) -> RetrievalResponse:
    """Return the passages that fit a question or an embedding best."""
    check_rate(request)
    return get_service(request.app).retrieve(query)


@router.post("/feedback", status_code=204, responses=_REJECTIONS)
def feedback(rating: Feedback, request: Request) -> Response:
    """Say whether an answer helped, and why not. A second rating of a turn takes the place of the first."""
    check_rate(request)
    with reaching_records():
        get_service(request.app).rate(rating)
    return Response(status_code=204)


@router.get(
    "/schema",
    response_model=DocumentSchema | dict[str, DocumentSchema],
    responses={200: _SCHEMAS, **openapi_entries(403, 422)},
)
async def schema(
    doc_type: Literal["page", "persona", "faq", "memory", "turn", "summary"] | None = None,
) -> JSONResponse:
    """Return the JSON Schema of one type of documents, or of all."""
    return JSONResponse(load_part("document_schemas")(doc_type))


@router.get("/health", responses=openapi_entries(403))
async def health() -> Health:
    """Say that the process is up; neither the index nor a model is asked."""
    return Health()


@router.get("/status", responses=openapi_entries(403, 500, 503))
async def status(request: Request) -> ServiceStatus:
    """Return the indexes that are served, the models in use, and the parts that are degraded."""
    return await to_thread.run_sync(lambda: get_service(request.app).status(), limiter=_limit_status())


@router.head("/health", include_in_schema=False)
@router.head("/status", include_in_schema=False)
async def head() -> Response:
    """Answer a monitor that wants no body; what the status would hold is not asked for."""
    return Response(media_type="application/json")


@contextmanager
def reaching_records() -> Iterator[None]:
    """Run the block that uses the kept conversations; reject the request if they can't be reached."""
    try:
        yield
    except RecordsFault as error:
        # What a reader said is logged, but the owner reads the database, so the reader may try again.
        message = "The conversations that are kept can't be reached right now."
        raise Rejection(503, "records_unavailable", message, retryable=True) from error


def _limit_status() -> CapacityLimiter:
    # A limiter belongs to an event loop, so it is created during a request.
    try:
        return _status_limiter.get()
    except LookupError:
        _status_limiter.set(CapacityLimiter(_STATUS_THREADS))
        return _status_limiter.get()


def widget_routes() -> Iterator[Route]:
    """Yield a route for each module of the widget; other names get 404."""
    for name in bundle.names():
        yield Route(f"/widget/{name}", partial(_widget_module, name), include_in_schema=False)


async def _widget_module(name: str, request: Request) -> Response:
    # The name comes from our list, never from a request.
    content = (await to_thread.run_sync(bundle.files))[name]
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"cache-control": _WIDGET_CACHE, "etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="text/javascript; charset=utf-8", headers=headers)
