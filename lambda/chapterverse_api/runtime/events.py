"""AWS Lambda events: HTTP requests for the application, and scheduled or other events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mangum import Mangum
from mangum.types import ASGI, LambdaContext
from mangum.types import LambdaHandler as Request

from chapterverse_api import rejections
from chapterverse_api.observability import log
from chapterverse_api.rejections import Rejection


class LambdaHandler:
    """Answers HTTP events by the application, any other calmly, and a request that can't be read with 400.

    Attributes:
        mangum: the translation between events and ASGI.
    """

    def __init__(self, app: ASGI, warm: Callable[[], object] = lambda: None) -> None:
        """Take the application, and what a scheduled ping does so that the first reader need not wait for it."""
        # "auto" would run the lifespan on every invocation.
        self.mangum = Mangum(app, lifespan="off")
        self._warm = warm

    def __call__(self, event: Any, context: LambdaContext) -> dict[str, Any]:
        if not is_request(event):
            return self._ping(context)
        event = _readable(event)
        with _within(context):
            try:
                self.request(event, context)
                return self.mangum(event, context)
            except Exception as error:
                return answer(rejections.report(error))

    def request(self, event: dict[str, Any], context: LambdaContext) -> Request:
        """Return what an HTTP event asks, as the scope and the body of ASGI.

        Raises:
            Refusal: 400 for an event that can't be read, which the log is told of.
        """
        try:
            request = self.mangum.infer(_readable(event), context)
            _check(request.scope)
            _ = request.body
        except Exception as error:
            # Its own words may quote a reader's.
            with _within(context):
                log.event(
                    "error",
                    turn_id=None,
                    code="event_unreadable",
                    **log.origin_of(error),
                    message="An event is no request as a Function URL, API Gateway or a load balancer sends it: see "
                    "what invokes this function.",
                )
            raise Rejection(400, "malformed", "The request can't be read.") from None
        return request

    def _ping(self, context: LambdaContext) -> dict[str, Any]:
        with _within(context):
            try:
                self._warm()
            except Exception as error:
                # Nobody waits for an answer, and a failure would only make the rule's sender try again.
                rejections.report(error)
        return {"status": "ok"}


@contextmanager
def _within(context: LambdaContext) -> Iterator[None]:
    """Have what is logged in the block bear the id of this invocation."""
    token = log.request_id.set(getattr(context, "aws_request_id", None))
    try:
        yield
    finally:
        log.request_id.reset(token)


def is_request(event: Any) -> bool:
    """Return whether an event comes from a reader rather than from a rule, a queue or a console."""
    return isinstance(event, dict) and "requestContext" in event


def _readable(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of format 2.0 as Mangum can read it: with an address, and the path that the application knows.

    An address that is missing is an empty one: such callers share one count. At an HTTP API's own address, and at no
    domain of one's own, the path begins with the name of the stage.
    """
    context = event["requestContext"]
    http = context.get("http") if isinstance(context, dict) else None
    if not isinstance(http, dict):
        return event
    read = {"sourceIp": "", **http}
    stage, path = f"/{context.get('stage')}", str(http.get("path"))
    if ".execute-api." in str(context.get("domainName")) and path.startswith(f"{stage}/"):
        read["path"] = path.removeprefix(stage)
    return event | {"requestContext": context | {"http": read}}


def answer(refusal: Rejection) -> dict[str, Any]:
    """Return a refusal as every kind of HTTP event takes it."""
    response = refusal.response()
    return {
        "statusCode": response.status_code,
        "headers": {"cache-control": "no-store", "x-content-type-options": "nosniff", **response.headers},
        "body": bytes(response.body).decode(),
        "isBase64Encoded": False,
    }


def _check(scope: Any) -> None:
    """Raise `TypeError` for what Mangum passes on unseen and no middleware expects."""
    named = {name: scope[name] for name in ("method", "path", "scheme")} | {"client": scope["client"][0] or ""}
    wrong = [name for name, value in named.items() if not isinstance(value, str)]
    if wrong:
        raise TypeError(f"no string: {', '.join(wrong)}")
