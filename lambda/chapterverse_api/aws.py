"""Events of AWS Lambda: HTTP for the application, and whatever else an operator's rules send to a function."""

from __future__ import annotations

from typing import Any

from mangum import Mangum
from mangum.types import ASGI, LambdaContext

from chapterverse_api import refusals
from chapterverse_api.refusals import Refusal


class LambdaHandler:
    """Answers HTTP events by the application, a scheduled ping calmly, and an event that can't be read with 400.

    Attributes:
        mangum: the translation between events and ASGI.
    """

    def __init__(self, app: ASGI) -> None:
        # "auto" would run the lifespan on every invocation.
        self.mangum = Mangum(app, lifespan="off")

    def __call__(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        if "requestContext" not in event:
            return {"status": "ok"}
        try:
            return self.mangum(event, context)
        except Exception as error:
            # Mangum answers for what the application raises: this is what it could not read from the event.
            refusals.report(error)
            return _answer(Refusal(400, "malformed", "The request can't be read."))


def _answer(refusal: Refusal) -> dict[str, Any]:
    response = refusal.response()
    return {
        "statusCode": response.status_code,
        "headers": dict(response.headers),
        "body": bytes(response.body).decode(),
        "isBase64Encoded": False,
    }
