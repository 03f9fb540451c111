"""`POST /mcp`: the Model Context Protocol, one message and one JSON reply. Absent unless switched on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from chapterverse_api.deadline import Deadline
from chapterverse_api.ext.agents.mcp.messages import (
    RESOURCE_NOT_FOUND,
    Headers,
    Id,
    McpCall,
    McpError,
    limit_reply,
    read_call,
    read_id,
    result_reply,
)
from chapterverse_api.http.admission import check_rate, parse_body, read_body
from chapterverse_api.http.answers import WorkerResponse, get_deadline, get_origins, get_service
from chapterverse_api.rejections import Rejection

router = APIRouter()

#: What costs something is counted; to connect and to list tools does not.
_COUNTED = ("tools/call", "resources/")
#: The resource of the report's room.
_GAPS = "report://gaps"

_OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object", "description": "A JSON-RPC 2.0 message"}}},
    }
}
_JSON: dict[str, Any] = {"content": {"application/json": {"schema": {"type": "object"}}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The reply, a JSON-RPC result or error", **_JSON},
    202: {"description": "A notification was taken"},
    **{status: {"description": "A JSON-RPC error", **_JSON} for status in (400, 403, 404, 413, 415, 429, 500, 503)},
}


@router.post("/mcp", response_class=JSONResponse, responses=_RESPONSES, openapi_extra=_OPENAPI)
async def mcp(request: Request) -> Response:
    """Answer a message of the Model Context Protocol."""
    request_id: Id = None
    headers: Headers = request.headers.items()
    try:
        raw = await read_body(request)
        message = parse_body(raw)
        request_id = read_id(message)
        call = read_call(message, headers)
        if call.id is None:
            # Nothing is done for a notification: a client that leaves closes its connection.
            return Response(status_code=202)
        if call.method.startswith(_COUNTED) and (rejection := await to_thread.run_sync(_rejection, request)):
            return _reject(call, rejection)
    except Rejection as rejection:
        return _error(McpError.from_rejection(rejection), request_id)
    except McpError as error:
        return _error(error, request_id)
    deadline = get_deadline(request)
    return WorkerResponse(partial(_answer, call, request, deadline), deadline)


def _rejection(request: Request) -> Rejection | None:
    """Count a call; return the rejection of one too many."""
    try:
        check_rate(request, program=True)
    except Rejection as rejection:
        return rejection
    return None


def _reject(call: McpCall, rejection: Rejection) -> Response:
    """Return the reply to a call too many: a model reads results, and may never see an error of the protocol."""
    reply = limit_reply(call, rejection)
    headers = {"retry-after": str(rejection.retry_after)} if rejection.retry_after else {}
    return JSONResponse(reply, 200, headers)


def _answer(call: McpCall, request: Request, deadline: Deadline) -> Response:
    # The tools are most of this; a cold start must not pay for them before the first call.
    from chapterverse_api.ext.agents.mcp.protocol import answer, read_gaps
    from chapterverse_api.ext.agents.tools.tool import ToolContext

    context = ToolContext(get_service(request.app), deadline, get_origins(request))
    try:
        # Only over HTTP, because it needs a header.
        if call.method == "resources/read" and call.params.get("uri") == _GAPS:
            gaps = read_gaps(context.service.settings, request.headers.get("authorization", ""))
            return JSONResponse(_gaps_reply(call, gaps))
        return JSONResponse(answer(call, context))
    except McpError as error:
        return _error(error, call.id)


def _gaps_reply(call: McpCall, text: str | None) -> dict[str, Any]:
    if text is None:
        raise McpError(RESOURCE_NOT_FOUND, "There is no such resource.", status=404)
    content = {"uri": _GAPS, "mimeType": "text/markdown", "text": text}
    # No client may keep it: it holds the words of readers.
    return result_reply(call, {"contents": [content], "ttlMs": 0, "cacheScope": "private"})


def _error(error: McpError, request_id: Id) -> Response:
    headers: Mapping[str, str] = error.headers
    return JSONResponse(error.reply(request_id), error.status, dict(headers))
