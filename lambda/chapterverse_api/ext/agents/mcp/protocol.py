"""Answers calls of the Model Context Protocol, each by itself: there is no session, and no stream.

Pages are resources by their addresses, as Markdown. The resource `report://gaps` is the work list that `chapterverse
report --gaps` wrote, for who sends the token. The file is served as it is, up to a megabyte, and nothing is computed.
Without a token, with another one, and without a file, the reply is the same: there is no such resource.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeAlias

from chapterverse.errors import ChapterVerseError, InputError
from chapterverse.model import PAGE
from chapterverse.settings import Settings
from chapterverse_api import log, rejections
from chapterverse_api.deadline import ClientDisconnected
from chapterverse_api.ext.agents.mcp.messages import (
    INVALID_PARAMS,
    LEGACY,
    METHOD_NOT_FOUND,
    MODERN,
    RESOURCE_NOT_FOUND,
    SERVER_INFO,
    McpCall,
    McpError,
    result_reply,
)
from chapterverse_api.ext.agents.tools.documentation import documentation_tools
from chapterverse_api.ext.agents.tools.sections import find_page, markdown
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.index.site_index import SiteIndex

#: The resource of the report's room.
GAPS = "report://gaps"
#: A work list has fifty gaps of some kilobytes.
_MAX_GAPS_BYTES = 1 << 20
_MARKDOWN = "text/markdown"
#: Pages of one list: on a remote store each is a request.
_MAX_LIST_PAGES = 50
RpcResult: TypeAlias = dict[str, Any]
_Handler: TypeAlias = Callable[[McpCall, ToolContext], RpcResult]
#: Milliseconds for which a client may cache what only a deployment changes, and what a new index changes.
_DEPLOYMENT_MS, _GENERATION_MS = 3_600_000, 60_000
_TOOL_ANNOTATIONS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_INSTRUCTIONS = (
    "Search, read and ask the official documentation{place}. Cite the url of what you use. Before you state something "
    "about the product that you have not read there, check it by verify_claim."
)


def gaps_reply(call: McpCall, context: ToolContext, authorization: str) -> RpcResult:
    """Return the message with the work list.

    Args:
        authorization: the header of that name, `Bearer TOKEN`.

    Raises:
        McpError: the token is another one, or there is no list.
    """
    text = _read_gaps(context.service.settings, authorization)
    if text is None:
        raise McpError(RESOURCE_NOT_FOUND, "There is no such resource.", status=404)
    content = {"uri": GAPS, "mimeType": _MARKDOWN, "text": text}
    # No client may keep it: it holds the words of readers.
    return result_reply(call, {"contents": [content], "ttlMs": 0, "cacheScope": "private"})


def _read_gaps(settings: Settings, authorization: str) -> str | None:
    kind, _, token = authorization.partition(" ")
    # Digests are compared in a time that tells neither where the texts differ nor how long they are.
    given, known = (sha256(each.encode(errors="replace")).digest() for each in (token, settings.report_token))
    if not settings.report_token or kind.lower() != "bearer" or not hmac.compare_digest(given, known):
        return None
    try:
        with (settings.local_folder / "gaps.md").open("rb") as file:
            return file.read(_MAX_GAPS_BYTES).decode(errors="ignore")
    except OSError:
        return None


def page_list(cursor: object, index: SiteIndex) -> dict[str, Any]:
    """Return some pages as `resources`, by file path, and the `nextCursor` if there are more.

    Args:
        cursor: the cursor of the list before, None for the first.

    Raises:
        InputError: the cursor is not one that a list has returned.
        IndexFault: no index can be read.
    """
    snapshot = index.snapshot()
    places = [str(place) for place in snapshot.values("source_file_path")]
    start = _start(cursor, len(places))
    end = start + _MAX_LIST_PAGES
    # The persona, FAQ entries and memories have no page of their own.
    pages = ([chunk for chunk in snapshot.page(place) if chunk.type == PAGE] for place in places[start:end])
    resources = [
        {
            "uri": index.public_url(page[0], snapshot.head).partition("#")[0],
            "name": page[0].source_file_path,
            "title": page[0].chapter_title,
            "mimeType": _MARKDOWN,
        }
        for page in pages
        if page
    ]
    return {"resources": resources, **({"nextCursor": str(end)} if end < len(places) else {})}


def _start(cursor: object, count: int) -> int:
    if cursor is None:
        return 0
    if isinstance(cursor, str) and cursor.isascii() and cursor.isdecimal() and len(cursor) < 10 and int(cursor) < count:
        return int(cursor)
    raise InputError("There is no such cursor: begin with the first list again.")


def answer(call: McpCall, context: ToolContext) -> RpcResult:
    """Return the message that answers a request. Blocks. Nothing is kept of a client.

    Raises:
        McpError: the request gets an error.
        ClientDisconnected: the client has left.
    """
    handlers = {**_METHODS, **(_MODERN if call.modern else _LEGACY)}
    try:
        if call.method not in handlers:
            raise McpError(METHOD_NOT_FOUND, "This server has no such method.")
        return result_reply(call, handlers[call.method](call, context))
    except McpError as error:
        error.status = error.status if call.modern else 200
        raise
    except ClientDisconnected:
        raise
    except Exception as error:
        raise McpError.from_rejection(rejections.report(error, site=context.service.site)) from error


def _list_tools(_: McpCall, __: ToolContext) -> RpcResult:
    tools = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.arguments,
            "outputSchema": tool.result,
            "annotations": {"title": tool.title, **_TOOL_ANNOTATIONS},
        }
        for tool in documentation_tools().values()
    ]
    return {"tools": tools, **_cacheable(_DEPLOYMENT_MS)}


def _call_tool(call: McpCall, context: ToolContext) -> RpcResult:
    name, arguments = call.params.get("name"), call.params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise McpError(INVALID_PARAMS, "tools/call needs a name, and an object of arguments.")
    tool = documentation_tools().get(name)
    if tool is None:
        raise McpError(INVALID_PARAMS, "This server has no such tool.")
    try:
        result = tool.run(arguments, context)
    except (ChapterVerseError, rejections.Rejection) as error:
        context.deadline.check()
        # A model can correct its call after a result; it may never see an error of the protocol.
        text = rejections.report(error, site=context.service.site).message
        log.event("tool_called", tool=name, ok=False)
        return {"content": [{"type": "text", "text": text}], "isError": True}
    log.event("tool_called", tool=name, ok=True)
    text = json.dumps(result, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": False}


def _introduce(context: ToolContext, **more: Any) -> RpcResult:
    """Return what both eras say of this server first."""
    place = context.service.settings.base_url or context.service.site
    instructions = _INSTRUCTIONS.format(place=f" at {place}" if place else "")
    return {"capabilities": {"tools": {}, "resources": {}}, **more, "instructions": instructions}


def _cacheable(milliseconds: int) -> RpcResult:
    # The documentation is the same for all readers.
    return {"ttlMs": milliseconds, "cacheScope": "public"}


def _discover(_: McpCall, context: ToolContext) -> RpcResult:
    return {"supportedVersions": [*MODERN, *LEGACY], **_introduce(context), **_cacheable(_DEPLOYMENT_MS)}


def _initialize(call: McpCall, context: ToolContext) -> RpcResult:
    version = call.params.get("protocolVersion")
    if not isinstance(version, str):
        raise McpError(INVALID_PARAMS, "initialize needs a protocolVersion.")
    spoken = version if version in LEGACY else LEGACY[0]
    return {"protocolVersion": spoken, **_introduce(context, serverInfo=SERVER_INFO)}


def _list_resources(call: McpCall, context: ToolContext) -> RpcResult:
    try:
        listed = page_list(call.params.get("cursor"), context.service.resources.index)
    except InputError as error:
        raise McpError(INVALID_PARAMS, str(error)) from None
    return {**listed, **_cacheable(_GENERATION_MS)}


def _read_resource(call: McpCall, context: ToolContext) -> RpcResult:
    uri = call.params.get("uri")
    if not isinstance(uri, str):
        raise McpError(INVALID_PARAMS, "resources/read needs a uri.")
    try:
        _, sections = find_page(uri, context.service.resources.index)
    except InputError:
        code = INVALID_PARAMS if call.modern else RESOURCE_NOT_FOUND
        # The uri is the client's, and returns as data only.
        raise McpError(code, "This documentation has no such page.", {"uri": uri[:2048]}) from None
    content = {"uri": uri, "mimeType": _MARKDOWN, "text": markdown(sections)}
    return {"contents": [content], **_cacheable(_GENERATION_MS)}


_METHODS: Mapping[str, _Handler] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": lambda _, __: {"resourceTemplates": [], **_cacheable(_DEPLOYMENT_MS)},
    "resources/read": _read_resource,
}
_MODERN: Mapping[str, _Handler] = {"server/discover": _discover}
_LEGACY: Mapping[str, _Handler] = {"initialize": _initialize, "ping": lambda _, __: {}}
