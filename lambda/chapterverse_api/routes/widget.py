"""`GET /widget/…`: the widget's own files, for sites that load them from the API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import chapterverse

_FOLDER = Path(chapterverse.__file__).parent / "widget"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
# The names carry no version, so a browser may keep a file only as long as a stale one does no harm.
_CACHE = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, served as it is. The path was listed by us: no request names a file."""

    path: Path

    async def __call__(self, request: Request) -> Response:
        content = self.path.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {"cache-control": _CACHE, "etag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_TYPES[self.path.suffix], headers=headers)


def routes() -> Iterator[Route]:
    """Yield one route for each file that the package ships, so that anything else is simply not there."""
    for path in sorted(_FOLDER.rglob("*")):
        if path.suffix in _TYPES and path.is_file():
            name = path.relative_to(_FOLDER).as_posix()
            yield Route(f"/widget/{name}", Asset(path).__call__, include_in_schema=False)
