"""The AWS Lambda entry point: `chapterverse_api.handler.handler`, for Function URLs and API Gateway.

Importing it reads the environment and opens nothing: the index opens at the first question.
"""

from __future__ import annotations

import sys

from mangum.types import ASGI

from chapterverse.errors import ConfigurationError
from chapterverse_api import log, refusals
from chapterverse_api.app import create_app
from chapterverse_api.aws import LambdaHandler


def _app() -> ASGI:
    try:
        return create_app()
    except ConfigurationError as error:
        # A failed import would be retried for ever and tell the reader nothing; this says it in one sentence.
        return refusals.report(error).response()


log.write_to(sys.stdout)
handler = LambdaHandler(_app())
