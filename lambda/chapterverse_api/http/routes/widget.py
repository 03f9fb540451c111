"""`GET /widget/…`: serves the widget's files for sites that load them from the API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from chapterverse.widget import bundle

# File names have no version, so browsers may cache a file only as long as a stale one does no harm.
_CACHE = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class Asset:
    """One module. Its name comes from our list, never from a request."""

    name: str

    async def __call__(self, request: Request) -> Response:
        content = (await run_in_threadpool(bundle.files))[self.name]
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {"cache-control": _CACHE, "etag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type="text/javascript; charset=utf-8", headers=headers)


def routes() -> Iterator[Route]:
    """Yield a route for each module of the package; other names get 404."""
    for name in bundle.names():
        yield Route(f"/widget/{name}", Asset(name).__call__, include_in_schema=False)
