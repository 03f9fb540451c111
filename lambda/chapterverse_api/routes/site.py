"""The built documentation itself, on the same origin as the API. API routes win; what is left of their space is 404."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from chapterverse.errors import ConfigurationError
from chapterverse_api.guard.headers import is_api


class Site(StaticFiles):
    """Files of a built site: a folder answers with its index.html, a missing page with 404.html.

    Raises:
        ConfigurationError: the folder does not exist.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigurationError(f"{folder} is no folder: build the site first.")
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        api = is_api(scope["path"])
        if api and scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        response = await super().get_response(path, scope)
        # A program that asks for a route we don't have wants our error shape, not the site's page.
        if api and response.status_code == 404:
            raise HTTPException(404)
        return response
