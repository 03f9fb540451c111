"""`POST /v1/plans`: a question to a plan of steps, and each next step. What plans is loaded at the first request."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from chapterverse_api import contract, rejections, request_limits
from chapterverse_api.http.admission import check_rate, parse_body, read_body
from chapterverse_api.http.answers import get_deadline, get_origins, get_service
from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1")

_TEXT = {"type": ["string", "null"]}
_REQUEST = {
    "type": "object",
    "description": "Either query, or the state of the response before.",
    "properties": {
        "query": {**_TEXT, "minLength": 1, "maxLength": request_limits.MAX_MESSAGE_CHARS},
        "page_url": {**_TEXT, "maxLength": request_limits.MAX_URL_CHARS},
        "language": {**_TEXT, "maxLength": request_limits.MAX_LANGUAGE_CHARS},
        "version": {**_TEXT, "maxLength": request_limits.MAX_VERSION_CHARS},
        "filters": {"type": "object"},
        "state": {**_TEXT, "minLength": 1},
        "input": {**_TEXT, "maxLength": 500, "description": "The answer to a step that asks."},
    },
    "additionalProperties": False,
}
_RESPONSE: dict[str, Any] = {
    "description": "The step to show, all steps in the first response, and the state to send back",
    "content": {"application/json": {"schema": {"type": "object"}}},
}


@router.post(
    "/plans",
    response_class=Response,
    responses={200: _RESPONSE, **openapi_entries(400, 403, 413, 415, 422, 429, 500, 503)},
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}}},
)
async def plans(request: Request) -> Response:
    """Lead a reader step by step through what the documentation describes."""
    document = parse_body(await read_body(request))
    return await run_in_threadpool(_answer, request, document)


def _answer(request: Request, document: Any) -> Response:
    from chapterverse_api.ext.agents.plans.contract import PlanRequest
    from chapterverse_api.ext.agents.plans.requests import calls_tools, plan_step

    plan_request = rejections.parse_request(PlanRequest, document)
    # A step that neither a model nor a tool sees costs nothing.
    if plan_request.state is None or calls_tools(plan_request.state):
        check_rate(request)
    service = get_service(request.app)
    step = plan_step(service, plan_request, deadline=get_deadline(request), origins=get_origins(request))
    return JSONResponse(contract.dump(step))
