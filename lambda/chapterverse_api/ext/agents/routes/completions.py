"""`POST /v1/chat/completions`: the chat for clients of OpenAI's API. `GET /v1/models`: what they ask for first.

What reads and writes that form is loaded at the first request.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from chapterverse_api.http import sse
from chapterverse_api.http.guard import body, rate
from chapterverse_api.http.json_answer import respond_with_json
from chapterverse_api.http.request_context import get_deadline, get_origins, get_service
from chapterverse_api.rejections import completions_openapi_entries

#: Largest body in bytes: clients send the whole of a conversation each time.
MAX_BODY_BYTES = 1024 * 1024

router = APIRouter(prefix="/v1")

_TEXT = {"type": "string"}
_PART = {"type": "object", "properties": {"type": _TEXT, "text": _TEXT}}
_MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"anyOf": [_TEXT, {"type": "array", "items": _PART}, {"type": "null"}]},
    },
    "required": ["role"],
}
_REQUEST = {
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
_ANSWER: dict[str, Any] = {
    "description": "The answer as in OpenAI's API reference, with `citations` beside the message",
    "content": {
        "application/json": {"schema": {"type": "object"}},
        sse.MEDIA_TYPE: {"schema": {"type": "string", "description": _STREAM}},
    },
}


def _document(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": {"type": "object"}}}}


@router.post(
    "/chat/completions",
    response_class=Response,
    responses={200: _ANSWER, **completions_openapi_entries(400, 403, 413, 415, 422, 429, 500, 503)},
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}}},
)
async def chat_completions(request: Request) -> Response:
    """Answer the last message of a conversation, in the form of OpenAI's API."""
    document = body.parse(await body.read(request, MAX_BODY_BYTES))
    return await run_in_threadpool(_answer, request, document)


@router.get(
    "/models",
    response_class=Response,
    responses={200: _document("The list of models"), **completions_openapi_entries(403)},
)
def models() -> Response:
    """List the one model that there is."""
    from chapterverse_api.ext.agents.completions import model_list

    return JSONResponse(model_list())


@router.get(
    "/models/chapterverse",
    response_class=Response,
    responses={200: _document("The model"), **completions_openapi_entries(403)},
)
def model() -> Response:
    """Return the one model that there is."""
    from chapterverse_api.ext.agents.completions import model_entry

    return JSONResponse(model_entry())


def _answer(request: Request, document: dict[str, Any]) -> Response:
    from chapterverse_api.ext.agents.completions import Completion, CompletionRequest

    completion_request = CompletionRequest.parse(document)
    rate.check(request)
    deadline = get_deadline(request)
    events = get_service(request.app).chat(completion_request.query, deadline=deadline, origins=get_origins(request))
    completion = Completion(completion_request)
    if completion_request.stream:
        return sse.EventStream(events, deadline, completion.frame)
    return respond_with_json(events, deadline, completion.document)
