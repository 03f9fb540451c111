"""A Cohere that runs on loopback and speaks the documented wire format of API v2.

It refuses what the real one refuses (unknown fields, more than 96 texts, empty or over-long ones), answers with vectors
that depend on the words of a text alone, plays the `Fault`s it was given, one a request, and remembers every request.
A further endpoint is one more entry of `_ENDPOINTS`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

KEY = "test-key"

#: As documented: dimensions and the most tokens of one text.
_MODELS = {
    "embed-english-v3.0": (1024, 512),
    "embed-multilingual-v3.0": (1024, 512),
    "embed-english-light-v3.0": (384, 512),
    "embed-multilingual-light-v3.0": (384, 512),
    "embed-v4.0": (1536, 128_000),
    "embed-v5.0-pro": (2048, 128_000),
    "embed-v5.0-fast": (2048, 128_000),
}


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes


@dataclass(frozen=True)
class Fault:
    """One misbehavior, played in place of a good reply.

    Attributes:
        status: answered instead of 200, with `headers`.
        change: maps the good reply to what is sent; may return bytes that are no JSON.
        cut: stop in the middle of the body and close the connection.
        drip: seconds between single bytes of the reply, headers included.
        hang: seconds of silence before anything is sent.
        close: close the connection after a good reply without announcing it.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], Any] | None = None
    cut: bool = False
    drip: float = 0.0
    hang: float = 0.0
    close: bool = False


def rate_limited(seconds: float = 0.001) -> Fault:
    return Fault(429, {"Retry-After": str(seconds), "retry-after-ms": str(seconds * 1000)})


def failing(status: int) -> Fault:
    """A failure that asks for the next try at once, which keeps the tests fast."""
    return Fault(status, {"Retry-After": "0.001", "retry-after-ms": "1"})


def with_vectors(change: Callable[[list[Any]], list[Any]]) -> Fault:
    """A reply of status 200 whose list of vectors went through `change`."""

    def changed(reply: dict[str, Any]) -> dict[str, Any]:
        return {**reply, "embeddings": {"float": change(reply["embeddings"]["float"])}}

    return Fault(change=changed)


class CohereServer:
    """The server, for the time of a `with`; `url` is what goes into CHAPTERVERSE_COHERE_URL."""

    def __init__(self) -> None:
        self.history: list[Request] = []
        self.faults: deque[Fault] = deque()
        self.connections = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def play(self, *faults: Fault) -> None:
        """Queue misbehaviors for the next requests, one each."""
        self.faults.extend(faults)

    def answer(self, request: Request) -> tuple[int, dict[str, Any]]:
        """Return the status and the good reply to a request, or what the real one says to a bad request."""
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return 401, {"id": "fake", "message": "invalid api token"}
        endpoint = _ENDPOINTS.get(request.path)
        if endpoint is None:
            return 404, {"id": "fake", "message": "not found"}
        try:
            return 200, endpoint(request.body)
        except _RefusedError as refusal:
            return refusal.status, {"id": "fake", "message": str(refusal)}
        except ValidationError as error:
            first = error.errors()[0]
            return 400, {"id": "fake", "message": f"invalid request: {first['loc']}: {first['msg']}"}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EmbedRequest(BaseModel):
    """Body of `POST /v2/embed` as documented, for texts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    input_type: Literal["search_document", "search_query", "classification", "clustering"]
    texts: list[str]
    embedding_types: list[Literal["float"]] = ["float"]
    truncate: Literal["NONE", "START", "END"] = "END"
    output_dimension: Literal[256, 512, 768, 1024, 1536, 2048] | None = None
    max_tokens: int | None = Field(None, ge=1)
    priority: int | None = Field(None, ge=0, le=999)


def tokens(text: str) -> int:
    """Count as this fake does: a word or a sign is a token."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def vector(text: str, size: int) -> list[float]:
    """Return a unit vector in which each word of `text` moves eight coordinates: texts that share words are near."""
    numbers = [0.0] * size
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.sha256(word.encode()).digest()
        for i in range(0, 32, 4):
            numbers[int.from_bytes(digest[i : i + 3]) % size] += 1.0 if digest[i + 3] & 1 else -1.0
    length = math.sqrt(sum(n * n for n in numbers)) or 1.0
    return [n / length for n in numbers]


def _embed(body: Any) -> dict[str, Any]:
    request = EmbedRequest.model_validate(body)
    if request.model not in _MODELS:
        raise _RefusedError(404, f"model '{request.model}' not found")
    size, limit = _MODELS[request.model]
    if request.output_dimension and "v3" in request.model:
        raise _RefusedError(400, "output_dimension is not supported by this model")
    if not 1 <= len(request.texts) <= 96:
        raise _RefusedError(400, f"total number of texts must be at most 96 - received {len(request.texts)}")
    for i, text in enumerate(request.texts):
        if not text:
            raise _RefusedError(400, f"inputs contains an element that is the empty string at index {i}")
        if request.truncate == "NONE" and tokens(text) > limit:
            raise _RefusedError(400, "a text is longer than the model's maximum")
    size = request.output_dimension or size
    return {
        "id": "fake",
        "embeddings": {"float": [vector(text, size) for text in request.texts]},
        "texts": request.texts,
        "response_type": "embeddings_by_type",
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": sum(map(tokens, request.texts))}},
    }


_ENDPOINTS: dict[str, Callable[[Any], dict[str, Any]]] = {"/v2/embed": _embed}


def _handler(server: CohereServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw), raw)
            server.history.append(request)
            fault = server.faults.popleft() if server.faults else Fault()
            status, reply = server.answer(request)
            if fault.status != 200:
                status, reply = fault.status, {"id": "fake", "message": "as asked"}
            changed = fault.change(reply) if fault.change else reply
            self._send(status, changed if isinstance(changed, bytes) else json.dumps(changed).encode(), fault)

        def _send(self, status: int, body: bytes, fault: Fault) -> None:
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **fault.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            data = f"HTTP/1.1 {status} As asked\r\n{lines}\r\n".encode() + body
            self.close_connection = fault.cut or fault.close
            time.sleep(fault.hang)
            try:
                self._write(data[: -len(body) // 2] if fault.cut else data, fault.drip)
            except OSError:
                # The client gave up first, which is what the slow faults are for.
                self.close_connection = True

        def _write(self, data: bytes, pause: float) -> None:
            for piece in [data[i : i + 1] for i in range(len(data))] if pause else [data]:
                self.wfile.write(piece)
                time.sleep(pause)

        def log_message(self, *args: object) -> None:
            """Say nothing: the history holds it."""

    return Handler
