"""Serves a built site on the API's origin."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from chapterverse.errors import ConfigurationError
from chapterverse_api.http.guard import is_api

_LOCATION = re.compile(r"<loc>([^<]+)")
#: Public by RFC 8615.
_OPEN = ".well-known"
#: What shrinks; a name without a suffix is a folder's page.
_TEXT = ("", ".html", ".js", ".css", ".json", ".svg", ".txt", ".xml", ".map")
#: The widget's files in a folder that names their content, as `inject` and the plugins write it: they never change.
_STAMPED = re.compile(r"(?:^|/)chapterverse/[^/]+[-/][0-9a-f]{8}/[\w/]{1,200}\.js$")


class StaticSite(StaticFiles):
    """Files of a built site: a folder is served as its index.html, `guide` as guide.html, a missing page as 404.html.

    Names that start with a dot are hidden, because a site's folder may contain keys (`.env`) or its history (`.git`).

    Raises:
        ConfigurationError: the folder does not exist.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigurationError(f"{folder} is no folder: build the site first.")
        super().__init__(directory=folder, html=True)
        self._folder = folder
        # Lazy: only needed if a site is served.
        from starlette.middleware.gzip import GZipMiddleware

        self._compressing = GZipMiddleware(super().__call__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A part of a file is a part of its own bytes.
        compressible = Path(scope["path"]).suffix in _TEXT and "range" not in Headers(scope=scope)
        await (self._compressing if compressible else super().__call__)(scope, receive, send)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Return a path's file and status, or "" and None if it is hidden or outside of the folder.

        As on the hosts of such sites, an address without a suffix is that of a page: VitePress and Docusaurus link so.
        """
        file, status = self._lookup(path)
        if status is None or (stat.S_ISDIR(status.st_mode) and not Path(file, "index.html").is_file()):
            page, page_status = self._lookup(f"{path}.html")
            return (page, page_status) if page_status else (file, status)
        return file, status

    def _lookup(self, path: str) -> tuple[str, os.stat_result | None]:
        if _is_hidden(path):
            return "", None
        file, status = super().lookup_path(path)
        # A link may lead to a hidden file.
        if status is None or _is_hidden(os.path.relpath(file, os.path.realpath(self._folder))):
            return "", None
        return file, status

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path == "sitemap.xml":
            return await run_in_threadpool(self._sitemap, Request(scope))
        api = is_api(scope["path"])
        if api and scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        response = await super().get_response(path, scope)
        # A client of an unknown API route expects our error format, not the site's page.
        if api and response.status_code == 404:
            raise HTTPException(404)
        if response.status_code == 200 and _STAMPED.search(path):
            response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response

    def _sitemap(self, request: Request) -> Response:
        """Return the sitemap with this server's addresses, which themes need for instant navigation."""
        file, status = self.lookup_path("sitemap.xml")
        if status is None or not stat.S_ISREG(status.st_mode):
            raise HTTPException(404)
        xml = Path(file).read_text("utf-8", errors="replace")
        # The shortest address is the site's root, the prefix of all others.
        root = min(_LOCATION.findall(xml), key=len, default="")
        here = str(request.base_url)
        return Response(xml.replace(f"<loc>{root}", f"<loc>{here}") if root else xml, media_type="application/xml")


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") and part not in (".", _OPEN) for part in Path(path).parts)
