"""Handles AWS Lambda events: HTTP requests, scheduled pings and others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mangum import Mangum
from mangum.types import ASGI, LambdaContext
from mangum.types import LambdaHandler as Request

from chapterverse_api import log, rejections
from chapterverse_api.rejections import Rejection
from chapterverse_api.request_limits import MAX_HEAD_BYTES

#: The end of a path that is one of the service's.
_OWN_PATH = re.compile(r"(?P<path>/(?:v1/(?!v1/)[^/]+(?:/[^/]+)?|mcp|widget/[^/]+(?:/[^/]+){0,2}|openapi\.json))\Z")


class LambdaHandler:
    """Answers HTTP events with the application, unreadable ones with 400, and all others as a ping.

    Attributes:
        mangum: translates between events and ASGI.
    """

    def __init__(self, app: ASGI, warm: Callable[[], object] = lambda: None) -> None:
        """Take the application, and a function that a scheduled ping calls to prepare for the first reader."""
        # "auto" would run the lifespan at every invocation.
        self.mangum = Mangum(app, lifespan="off")
        self._warm = warm

    def __call__(self, event: Any, context: LambdaContext) -> dict[str, Any]:
        if not is_request(event):
            return self._answer_ping(context)
        event = _normalize(event)
        with log.request(_request_id(context)):
            try:
                self.read_request(event, context)
                return self.mangum(event, context)
            except Exception as error:
                return _function_url_response(rejections.report(error))

    def read_request(self, event: dict[str, Any], context: LambdaContext) -> Request:
        """Return the ASGI scope and body of an HTTP event.

        Raises:
            Rejection: 400 for an unreadable event, which is logged; 431 for headers that are too large.
        """
        try:
            request = self.mangum.infer(_normalize(event), context)
            _check(request.scope)
            _ = request.body
        except Exception as error:
            # The error's message may quote a reader.
            with log.request(_request_id(context)):
                log.event(
                    "error",
                    code="event_unreadable",
                    **log.error_origin(error),
                    message="An event is no request as a Function URL, API Gateway or a load balancer sends it: see "
                    "what invokes this function.",
                )
            raise Rejection(400, "malformed", "The request can't be read.") from None
        if _head_bytes(request.scope) > MAX_HEAD_BYTES:
            raise rejections.head_too_large()
        return request

    def _answer_ping(self, context: LambdaContext) -> dict[str, Any]:
        with log.request(_request_id(context)):
            try:
                self._warm()
            except Exception as error:
                # No caller waits for an answer, and Lambda would only retry a failure.
                rejections.report(error)
        return {"status": "ok"}


def _request_id(context: LambdaContext) -> str | None:
    return getattr(context, "aws_request_id", None)


def is_request(event: Any) -> bool:
    """Return whether an event is an HTTP request, and not from a rule, a queue or a console."""
    return isinstance(event, dict) and "requestContext" in event


def _normalize(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event in the form that Mangum reads: with a source address, and a path without what stands before ours.

    A missing address becomes "", so such callers share one rate limit. The path of an HTTP API begins with the stage at
    its default domain, and that of any gateway with the key by which a domain of one's own is mapped to it.
    """
    context = event["requestContext"]
    if not isinstance(context, dict):
        return event
    http = context.get("http")
    if isinstance(http, dict):
        path, stage = http.get("path"), f"/{context.get('stage')}"
        if ".execute-api." not in str(context.get("domainName")):
            path = _own_path(path)
        elif str(path).startswith(f"{stage}/"):
            path = str(path).removeprefix(stage)
        return event | {"requestContext": context | {"http": {"sourceIp": "", **http, "path": path}}}
    return event | {"path": _own_path(event["path"])} if "path" in event else event


def _own_path(path: Any) -> Any:
    """Return a path without what a gateway put before it; the path itself if nothing of it is ours."""
    own = _OWN_PATH.search(path) if isinstance(path, str) else None
    return own["path"] if own else path


def _function_url_response(rejection: Rejection) -> dict[str, Any]:
    """Return a rejection in the format of every HTTP event."""
    response = rejection.response()
    return {
        "statusCode": response.status_code,
        "headers": {"cache-control": "no-store", "x-content-type-options": "nosniff", **response.headers},
        "body": bytes(response.body).decode(),
        "isBase64Encoded": False,
    }


def _check(scope: Any) -> None:
    """Raise `TypeError` for values that Mangum doesn't check and no middleware expects."""
    values = {name: scope[name] for name in ("method", "path", "scheme")} | {"client": scope["client"][0] or ""}
    non_strings = [name for name, value in values.items() if not isinstance(value, str)]
    if non_strings:
        raise TypeError(f"no string: {', '.join(non_strings)}")


def _head_bytes(scope: Any) -> int:
    """Return the bytes of a request's line and headers, as they were at least sent."""
    line = f"{scope['method']} {scope['path']}?"
    return len(line) + len(scope["query_string"]) + sum(len(name) + len(value) + 4 for name, value in scope["headers"])
