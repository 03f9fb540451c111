"""`POST /mcp`: the Model Context Protocol, one message and one JSON reply. Absent unless switched on."""

from __future__ import annotations

from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from chapterverse_api.deadline import Deadline
from chapterverse_api.ext.agents.mcp.messages import Id, McpCall, McpError, limit_reply, read_call, read_id
from chapterverse_api.http.admission import check_rate, parse_body, read_body
from chapterverse_api.http.answers import WorkerResponse, get_deadline, get_origins, get_service
from chapterverse_api.rejections import Rejection

router = APIRouter()

#: What costs something is counted; to connect and to list tools does not.
_COUNTED = ("tools/call", "resources/")

_MESSAGE = {"type": "object", "description": "A JSON-RPC 2.0 message"}
_OPENAPI = {"requestBody": {"required": True, "content": {"application/json": {"schema": _MESSAGE}}}}
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
    try:
        message = parse_body(await read_body(request))
        request_id = read_id(message)
        call = read_call(message, request.headers.items())
    except Rejection as rejection:
        return _error(McpError.from_rejection(rejection), request_id)
    except McpError as error:
        return _error(error, request_id)
    if call.id is None:
        # Nothing is done for a notification: a client that leaves closes its connection.
        return Response(status_code=202)
    if call.method.startswith(_COUNTED):
        try:
            await to_thread.run_sync(partial(check_rate, request, program=True))
        except Rejection as rejection:
            return JSONResponse(limit_reply(call, rejection), headers=rejection.headers)
    deadline = get_deadline(request)
    return WorkerResponse(partial(_answer, call, request, deadline), deadline)


def _answer(call: McpCall, request: Request, deadline: Deadline) -> Response:
    # The tools are most of this; a cold start must not pay for them before the first call.
    from chapterverse_api.ext.agents.mcp.protocol import GAPS, answer, gaps_reply
    from chapterverse_api.ext.agents.tools.tool import ToolContext

    context = ToolContext(get_service(request.app), deadline, get_origins(request))
    try:
        # Only over HTTP, because it needs a header.
        if call.method == "resources/read" and call.params.get("uri") == GAPS:
            return JSONResponse(gaps_reply(call, context, request.headers.get("authorization", "")))
        return JSONResponse(answer(call, context))
    except McpError as error:
        return _error(error, call.id)


def _error(error: McpError, request_id: Id) -> Response:
    return JSONResponse(error.reply(request_id), error.status, error.headers)
