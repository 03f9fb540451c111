"""`POST /v1/chat/completions`: the chat for clients of OpenAI's API. `GET /v1/models`: what they ask for first.

What reads and writes that form is loaded at the first request.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from chapterverse_api.http import answers
from chapterverse_api.http.admission import check_rate, parse_body, read_body
from chapterverse_api.rejections import openapi_entries
from chapterverse_api.request_limits import MAX_CONVERSATION_BYTES

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
        answers.EVENT_STREAM: {"schema": {"type": "string", "description": _STREAM}},
    },
}
_ERRORS = {
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "error": {
                        "type": "object",
                        "properties": {
                            "message": _TEXT,
                            "type": _TEXT,
                            "param": {"type": ["string", "null"]},
                            "code": _TEXT,
                        },
                        "required": ["message", "type", "param", "code"],
                    }
                },
                "required": ["error"],
            }
        }
    }
}


def _document(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": {"type": "object"}}}}


@router.post(
    "/chat/completions",
    response_class=Response,
    responses={200: _ANSWER, **openapi_entries(400, 403, 413, 415, 422, 429, 500, 503, errors=_ERRORS)},
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}}},
)
async def chat_completions(request: Request) -> Response:
    """Answer the last message of a conversation, in the form of OpenAI's API."""
    document = parse_body(await read_body(request, MAX_CONVERSATION_BYTES))
    return await run_in_threadpool(_answer, request, document)


@router.get(
    "/models",
    response_class=Response,
    responses={200: _document("The list of models"), **openapi_entries(403, errors=_ERRORS)},
)
def models() -> Response:
    """List the one model that there is."""
    from chapterverse_api.ext.agents.completions import model_list

    return JSONResponse(model_list())


@router.get(
    "/models/chapterverse",
    response_class=Response,
    responses={200: _document("The model"), **openapi_entries(403, errors=_ERRORS)},
)
def model() -> Response:
    """Return the one model that there is."""
    from chapterverse_api.ext.agents.completions import model_entry

    return JSONResponse(model_entry())


def _answer(request: Request, document: dict[str, Any]) -> Response:
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
