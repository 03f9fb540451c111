"""The AWS Lambda entry point `chapterverse_api.handler.handler`, for Function URLs and API Gateway.

Importing it reads the environment. The index opens at the first question or scheduled ping.
"""

from __future__ import annotations

import sys
from typing import cast

from chapterverse_api.ext.aws import cold_start

with cold_start.importing():
    from fastapi import FastAPI
    from mangum.types import ASGI

    from chapterverse.errors import ConfigurationError
    from chapterverse_api import log, rejections
    from chapterverse_api.app import create_app
    from chapterverse_api.ext.aws.events import LambdaHandler
    from chapterverse_api.http.answers import get_service
    from chapterverse_api.http.guard import AnyOrigin, Guard


def _create_handler() -> LambdaHandler:
    try:
        app = create_app()
    except ConfigurationError as error:
        # Lambda would retry a failed import for ever, and readers would see no reason.
        return LambdaHandler(cast(ASGI, Guard(rejections.report(error), AnyOrigin())))
    return LambdaHandler(app, warm=lambda: _open_indexes(app))


def _open_indexes(app: FastAPI) -> None:
    service = get_service(app)
    # Without an index, `snapshot(None)` raises the reason.
    versions = tuple(index.version for index in service.status().indexes)
    for version in versions or (None,):
        service.resources.index.snapshot(version)


log.write_to(sys.stdout)
with cold_start.importing():
    handler = _create_handler()
