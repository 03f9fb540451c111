"""Routes for programs: the chat for clients of OpenAI's API, and plans of steps.

    POST /v1/chat/completions                 the chat
    GET  /v1/models, /v1/models/chapterverse  what OpenAI's clients ask for first
    POST /v1/plans                            a question to a plan, and each next step

What reads, writes and plans is loaded at the first request.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from chapterverse_api import contract, rejections, request_limits
from chapterverse_api.http import answers
from chapterverse_api.http.admission import check_rate, parse_body, read_body
from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1")


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _response(description: str) -> dict[str, Any]:
    return {"description": description, **_json({"type": "object"})}


def _request_body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, **_json(schema)}}


_TEXT = {"type": "string"}
_OPTIONAL_TEXT = {"type": ["string", "null"]}
_PART = {"type": "object", "properties": {"type": _TEXT, "text": _TEXT}}
_MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"anyOf": [_TEXT, {"type": "array", "items": _PART}, {"type": "null"}]},
    },
    "required": ["role"],
}
_COMPLETION_REQUEST = {
    "type": "object",
    "description": "A request as in OpenAI's API reference. The last message of the user is the question. Fields that"
    " set how a model writes have no effect.",
    "properties": {
        "model": {**_TEXT, "description": "Any name; it is repeated."},
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "stream": {"type": ["boolean", "null"]},
    },
    "required": ["messages"],
}
_STREAM = "Chunks as in OpenAI's API reference, each with `citations`; then `[DONE]`, or an `error`."
_COMPLETION = _response("The answer as in OpenAI's API reference, with `citations` beside the message")
_COMPLETION["content"][answers.EVENT_STREAM] = {"schema": {**_TEXT, "description": _STREAM}}
_ERROR = {
    "type": "object",
    "properties": {"message": _TEXT, "type": _TEXT, "param": _OPTIONAL_TEXT, "code": _TEXT},
    "required": ["message", "type", "param", "code"],
}
_ERRORS = _json({"type": "object", "properties": {"error": _ERROR}, "required": ["error"]})
#: The one model that there is, whatever name a request gives it.
_MODEL = {"id": "chapterverse", "object": "model", "created": 0, "owned_by": "chapterverse"}
_PLAN_REQUEST = {
    "type": "object",
    "description": "Either query, or the state of the response before.",
    "properties": {
        "query": {**_OPTIONAL_TEXT, "minLength": 1, "maxLength": request_limits.MAX_MESSAGE_CHARS},
        "page_url": {**_OPTIONAL_TEXT, "maxLength": request_limits.MAX_URL_CHARS},
        "language": {**_OPTIONAL_TEXT, "maxLength": request_limits.MAX_LANGUAGE_CHARS},
        "version": {**_OPTIONAL_TEXT, "maxLength": request_limits.MAX_VERSION_CHARS},
        "filters": {"type": "object"},
        "state": {**_OPTIONAL_TEXT, "minLength": 1},
        "input": {**_OPTIONAL_TEXT, "maxLength": 500, "description": "The answer to a step that asks."},
    },
    "additionalProperties": False,
}
_PLAN = _response("The step to show, all steps in the first response, and the state to send back")


@router.post(
    "/chat/completions",
    response_class=Response,
    responses={200: _COMPLETION, **openapi_entries(400, 403, 413, 415, 422, 429, 500, 503, errors=_ERRORS)},
    openapi_extra=_request_body(_COMPLETION_REQUEST),
)
async def chat_completions(request: Request) -> Response:
    """Answer the last message of a conversation, in the form of OpenAI's API."""
    document = parse_body(await read_body(request, request_limits.MAX_CONVERSATION_BYTES))
    return await run_in_threadpool(_complete, request, document)


@router.get(
    "/models",
    response_class=Response,
    responses={200: _response("The list of models"), **openapi_entries(403, errors=_ERRORS)},
)
def models() -> Response:
    """List the one model that there is."""
    return JSONResponse({"object": "list", "data": [_MODEL]})


@router.get(
    "/models/chapterverse",
    response_class=Response,
    responses={200: _response("The model"), **openapi_entries(403, errors=_ERRORS)},
)
def model() -> Response:
    """Return the one model that there is."""
    return JSONResponse(_MODEL)


@router.post(
    "/plans",
    response_class=Response,
    responses={200: _PLAN, **openapi_entries(400, 403, 413, 415, 422, 429, 500, 503)},
    openapi_extra=_request_body(_PLAN_REQUEST),
)
async def plans(request: Request) -> Response:
    """Lead a reader step by step through what the documentation describes."""
    document = parse_body(await read_body(request))
    return await run_in_threadpool(_plan, request, document)


def _complete(request: Request, document: dict[str, Any]) -> Response:
    from chapterverse_api.ext.agents.completions import Completion, CompletionRequest

    completion_request = CompletionRequest.parse(document)
    check_rate(request)
    completion = Completion(completion_request)
    return answers.answer_request(
        completion_request.query,
        request,
        stream=completion_request.stream,
        frame=completion.frame,
        document=completion.document,
    )


def _plan(request: Request, document: Any) -> Response:
    from chapterverse_api.ext.agents.plans.plan import PlanRequest
    from chapterverse_api.ext.agents.plans.requests import calls_tools, plan_step

    plan_request = rejections.parse_request(PlanRequest, document)
    # A step that neither a model nor a tool sees costs nothing.
    if plan_request.state is None or calls_tools(plan_request.state):
        check_rate(request)
    service, origins = answers.get_service(request.app), answers.get_origins(request)
    step = plan_step(service, plan_request, deadline=answers.get_deadline(request), origins=origins)
    return JSONResponse(contract.dump(step))
