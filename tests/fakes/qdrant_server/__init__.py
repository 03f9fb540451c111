"""A Qdrant server on loopback: the server's REST over the embedded engine.

It satisfies the unmodified `qdrant-client`. Bodies are validated with the client's own models, which forbid unknown
fields; the engine behind it is the server's. It plays the `Fault`s it was given, one a request, dies after a number of
requests, and remembers every request. What it knows beyond `ROUTES` is nothing.

    with QdrantServer() as server: QdrantClient(server.url, api_key=KEY)
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import ValidationError

from fakes.local_server import LocalServer
from fakes.qdrant_server.engine import Collection, Engine
from fakes.qdrant_server.wire import Refused

KEY = "test-key"
#: The second key that a server may have (`read_only_api_key`).
READ_KEY = "test-read-key"
VERSION = "1.19.0"
_MEMORY = Path("/dev/shm")

#: What may be asked of a collection: method, the path after its name, what answers.
ROUTES: dict[tuple[str, str], Callable[[Collection, Any], Any]] = {
    ("GET", ""): lambda collection, _: collection.info(),
    ("PUT", "/index"): Collection.index,
    ("PUT", "/points"): Collection.upsert,
    ("POST", "/points"): Collection.retrieve,
    ("POST", "/points/payload"): Collection.set_payload,
    ("POST", "/points/payload/delete"): Collection.delete_payload,
    ("POST", "/points/delete"): Collection.delete,
    ("POST", "/points/scroll"): Collection.scroll,
    ("POST", "/points/count"): Collection.count,
    ("POST", "/points/query"): Collection.query,
    ("POST", "/points/query/batch"): Collection.query_batch,
    ("POST", "/facet"): Collection.facet,
}


@dataclass(frozen=True)
class Request:
    """A request as it came; `path` is percent-encoded and without the query, `body` is parsed JSON or None."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any

    @property
    def writes(self) -> bool:
        """Whether it may change something: all but reads, which are sent as POST too."""
        tail = self.path.rpartition("/")[2]
        return self.method in {"PUT", "DELETE"} or tail in {"payload", "delete"}


@dataclass(frozen=True)
class Fault:
    """One misbehavior.

    Attributes:
        status: answered instead of the good reply; the request changes nothing then.
        change: maps the good reply to what is sent; may return bytes that are no JSON.
        lost: do what was asked, then close the connection without a word.
        refuse: close the connection without doing anything.
        cut: do what was asked, send half of the reply, then close.
        hang: seconds of silence before the reply.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[Any], Any] | None = None
    lost: bool = False
    refuse: bool = False
    cut: bool = False
    hang: float = 0.0


GOOD = Fault()


class QdrantServer(LocalServer):
    """The server, for the time of a `with`; `url` is what goes into QDRANT_URL.

    Args:
        folder: where collections are kept for another server to take up later; None for the time of this one.
        key: what `api-key` must be; None asks for none. `READ_KEY` may read beside it.
        version: what it says it is.
    """

    def __init__(self, folder: Path | None = None, *, key: str | None = KEY, version: str = VERSION) -> None:
        self.key = key
        self.version = version
        self.history: list[Request] = []
        self.faults: deque[Fault] = deque()
        self.before: Callable[[Request], None] | None = None
        # In memory where the system has such a place: the engine syncs at every index, which a disk takes its time for.
        memory = _MEMORY if _MEMORY.is_dir() else None
        self._own = None if folder else tempfile.TemporaryDirectory(prefix="qdrant-", dir=memory)
        self._engine = Engine(Path(self._own.name) if self._own else folder or Path())
        self._lives: int | None = None
        self._last = Fault(refuse=True)
        # The engine is one, and a request is done before the next begins.
        self._lock = threading.Lock()
        super().__init__(_handler(self))

    def play(self, *faults: Fault) -> None:
        """Queue misbehaviors for the next requests, one each; `GOOD` is none."""
        self.faults.extend(faults)

    def die_after(self, requests: int, last: Fault = Fault(refuse=True)) -> None:
        """Serve so many more requests, play `last` for the one after, and refuse all others until `revive`."""
        self._lives, self._last = requests, last

    @property
    def survived(self) -> bool:
        """Whether it has not died since `die_after`."""
        return self._lives is None or self._lives >= 0

    def revive(self) -> None:
        self._lives = None

    @property
    def collections(self) -> list[str]:
        return [found["name"] for found in self._engine.names()]

    def points(self, collection: str) -> list[dict[str, Any]]:
        """Return all points of a collection with their payloads, dead and unborn ones included."""
        with self._lock:
            found = self._engine.collection(collection).scroll({"limit": 100_000, "with_payload": True})
        points: list[dict[str, Any]] = found["points"]
        return points

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Do what a request would do, behind everybody's back: no fault, no history."""
        status, reply = self.answer(Request(method, path, {}, {"api-key": self.key or ""}, body))
        assert status == 200, reply
        return reply["result"]

    def next_fault(self) -> Fault:
        if self._lives is not None:
            self._lives -= 1
            if self._lives < 0:
                return self._last if self._lives == -1 else Fault(refuse=True)
        return self.faults.popleft() if self.faults else GOOD

    def answer(self, request: Request) -> tuple[int, Any]:
        """Do what a request asks; return the status and the reply, also where the real one refuses."""
        started = time.perf_counter()
        try:
            with self._lock:
                result = self._result(request)
        except Refused as refusal:
            return refusal.status, {"status": {"error": str(refusal)}, "time": 0.0}
        except ValidationError as error:
            first = error.errors()[0]
            return 400, {"status": {"error": f"Format error in JSON body: {first['loc']}: {first['msg']}"}, "time": 0.0}
        if request.path == "/":
            return 200, result
        return 200, {"result": result, "status": "ok", "time": time.perf_counter() - started}

    def _result(self, request: Request) -> Any:
        if self.key is not None and request.headers.get("api-key") != self.key:
            if request.headers.get("api-key") != READ_KEY:
                missing = "api-key" not in request.headers
                raise Refused(401, "Must provide an API key" if missing else "Invalid API key or JWT")
            if request.writes:
                raise Refused(403, "Forbidden: Global manage access is required")
        if request.path == "/":
            return {"title": "qdrant - vector search engine", "version": self.version, "commit": "fake"}
        if request.path == "/collections":
            return {"collections": list(self._engine.names())}
        start, _, rest = request.path.removeprefix("/collections/").partition("/")
        name, tail = unquote(start), f"/{rest}" if rest else ""
        if (request.method, tail) == ("GET", "/exists"):
            return {"exists": name in self._engine.collections}
        if (request.method, tail) == ("PUT", ""):
            return self._engine.create(name, request.body)
        if (request.method, tail) == ("DELETE", ""):
            return self._engine.drop(name)
        route = ROUTES.get((request.method, tail))
        if route is None or not request.path.startswith("/collections/"):
            raise Refused(404, "")
        return route(self._engine.collection(name), request.body)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        with self._lock:
            self._engine.close()
        if self._own:
            self._own.cleanup()


def _handler(server: QdrantServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_DELETE(self) -> None:
            self._serve()

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            headers = {k.lower(): v for k, v in self.headers.items()}
            body = json.loads(raw) if raw else None
            request = Request(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
            server.history.append(request)
            if server.before:
                server.before(request)
            fault = server.next_fault()
            if fault.refuse:
                self.close_connection = True
                return
            status, reply = fault.status, {"status": {"error": "as asked"}, "time": 0.0}
            if fault.status == 200:
                status, reply = server.answer(request)
            changed: Any = fault.change(reply) if fault.change else reply
            self._send(status, changed if isinstance(changed, bytes) else json.dumps(changed).encode(), fault)

        def _send(self, status: int, body: bytes, fault: Fault) -> None:
            time.sleep(fault.hang)
            self.close_connection = fault.cut or fault.lost
            if fault.lost:
                return
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **fault.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            data = f"HTTP/1.1 {status} As asked\r\n{lines}\r\n".encode() + body
            try:
                self.wfile.write(data[: len(data) - len(body) // 2 - 1] if fault.cut else data)
            except OSError:
                # The client gave up first.
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            """Say nothing: the history holds it."""

    return Handler
