"""A loopback server for a docs site and its API, in the API's wire format."""

from __future__ import annotations

import gzip
import json
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from pathlib import Path, PurePath
from threading import Event, Thread
from time import sleep
from typing import Any

from chapterverse.widget.bundle import assets
from widget import pages

#: Seconds by which each module of the widget comes late, so that a test fails that doesn't wait for one.
MODULE_DELAY = float(os.environ.get("CHAPTERVERSE_MODULE_DELAY", "0"))

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".xml": "text/xml",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Reply:
    """The API's next reply. An `Event` among the parts makes it wait; a reply that is `cut` never ends properly."""

    parts: tuple[bytes | Event, ...]
    status: int = 200
    content_type: str = "text/event-stream"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


def sse(event: str, data: object) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def stream(answer: dict[str, Any], *deltas: str | Event) -> Reply:
    """Stream an answer: its sources, its text (the answer itself unless `deltas` say otherwise), then the final."""
    parts = deltas or [answer["response"]]
    pieces = [d if isinstance(d, Event) else sse("delta", {"text": d, "check": "none"}) for d in parts]
    meta = sse("meta", {"turn_id": "t", "mode": answer["mode"], "sources": answer["source_chunks"]})
    return Reply((meta, *pieces, sse("final", answer)))


def checked(answer: dict[str, Any], *stops: Event | None) -> Reply:
    """Stream an answer by its checked segments, as the API does. Before each it waits for its event, if it has one."""
    meta = sse("meta", {"turn_id": "t", "mode": answer["mode"], "sources": answer["source_chunks"]})
    parts: list[bytes | Event] = [meta]
    for segment, stop in zip_longest(answer["segments"], stops):
        parts += [stop] if stop else []
        parts += [sse("delta", segment)] if segment else []
    return Reply((*parts, sse("final", answer)))


def whole(answer: dict[str, Any]) -> Reply:
    """Answer as JSON, as a deployment behind a gateway that cannot stream does."""
    return Reply((json.dumps(answer).encode(),), content_type="application/json")


def refused(status: int, message: str = "no", **headers: str) -> Reply:
    body = json.dumps({"error": {"code": "x", "message": message}}).encode()
    return Reply((body,), status, "application/json", {k.replace("_", "-"): v for k, v in headers.items()})


class Site:
    """The server. `replies` is what it will say, `asked` what it was asked; without a reply it echoes the question.

    `opinions` is what readers said of answers, and `receipts` what they get for it in place of a 204.
    """

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.asked: list[dict[str, Any]] = []
        self.opinions: list[dict[str, Any]] = []
        self.receipts: deque[Reply] = deque()
        self.headers: list[dict[str, str]] = []
        self.config: dict[str, Any] = {"endpoint": "", "title": "Ask the docs"}
        self.url = ""
        #: A built site, in place of the stand-in's own pages.
        self.folder: Path | None = None

    def file(self, path: str) -> tuple[str, dict[str, str], bytes] | None:
        """Return content type, further headers and content of a path, or None."""
        kind = TYPES.get(PurePath(path).suffix, TYPES[".html"])
        if path.startswith("/widget/"):
            content = assets(self.config).get(path.removeprefix("/widget/"))
            return (kind, {}, content) if content else None
        if self.folder:
            file = self.folder / path.lstrip("/")
            return (kind, {}, file.read_bytes()) if file.is_file() else None
        page = pages.PAGES.get(path)
        return (kind, page.headers, page.html.encode()) if page else None

    def reply(self, query: dict[str, Any]) -> Reply:
        if self.replies:
            return self.replies.popleft()
        return stream(pages.answer(f"You asked: {query.get('query')}", citations=["1"]))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        found = self.site.file(self.path.split("?")[0])
        if found is None:
            return self.send_error(404)
        content_type, headers, content = found
        if self.path.startswith("/widget/"):
            sleep(MODULE_DELAY)
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            content, headers = gzip.compress(content, 9, mtime=0), {**headers, "Content-Encoding": "gzip"}
        self._head(200, {"Content-Type": content_type, "Content-Length": str(len(content)), **headers})
        self.wfile.write(content)
        return None

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/feedback":
            return self._receive(json.loads(body))
        self.site.asked.append(json.loads(body))
        self.site.headers.append(dict(self.headers))
        return self._say(self.site.reply(self.site.asked[-1]))

    def _receive(self, opinion: dict[str, Any]) -> None:
        self.site.opinions.append(opinion)
        if self.site.receipts:
            self._say(self.site.receipts.popleft())
        else:
            self._head(204, {})

    def _say(self, reply: Reply) -> None:
        if reply.status == 204:
            # Not even the end of a body: what comes after it would be taken for the start of the next reply.
            return self._head(204, {"Content-Type": reply.content_type, **reply.headers})
        self._head(reply.status, {"Content-Type": reply.content_type, "Transfer-Encoding": "chunked", **reply.headers})
        for part in reply.parts:
            if isinstance(part, Event):
                part.wait(20)
            elif not self._chunk(part):
                return None
        self.close_connection = reply.cut
        if not reply.cut:
            self._chunk(b"")
        return None

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Cache-Control": "no-store", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, part: bytes) -> bool:
        """Send a chunk; False once the reader is gone."""
        try:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.flush()
        except OSError:
            return False
        return True

    def log_message(self, *args: object) -> None:
        """Say nothing: the default prints each request."""


@contextmanager
def serve() -> Iterator[Site]:
    """Run a site on a free loopback port for as long as the block lasts."""
    site = Site()
    handler = type("SiteHandler", (Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        site.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
