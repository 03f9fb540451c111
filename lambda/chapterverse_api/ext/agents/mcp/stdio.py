"""Serves the Model Context Protocol on standard input and output, a message a line.

Requests are answered in parallel, and in any order. A line that is no request gets an error of the protocol. After the
end of the input, open requests are still answered, which takes no longer than an answer does.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO

from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.ext.agents.mcp.messages import INVALID_REQUEST, Id, McpCall, McpError, read_call, read_id
from chapterverse_api.ext.agents.mcp.protocol import answer
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.http.admission import parse_body
from chapterverse_api.rejections import Rejection
from chapterverse_api.request_limits import MAX_BODY_BYTES
from chapterverse_api.service import Service

_THREADS = 4


def serve(service: Service, read: BinaryIO, write: BinaryIO) -> None:
    """Answer each line until the input ends.

    Args:
        read: lines of at most 128 KB.
        write: gets nothing but messages.
    """
    with ThreadPoolExecutor(_THREADS, "chapterverse-mcp") as pool:
        client = _Client(service, write, pool)
        while line := read.readline(MAX_BODY_BYTES + 2):
            if not line.endswith(b"\n") and len(line) > MAX_BODY_BYTES:
                # The rest of the line.
                while (rest := read.readline(MAX_BODY_BYTES)) and not rest.endswith(b"\n"):
                    pass
            if line.strip():
                client.take(line)


class _Client:
    """The program at the other end, and its open requests."""

    def __init__(self, service: Service, write: BinaryIO, pool: ThreadPoolExecutor) -> None:
        self._service, self._write, self._pool = service, write, pool
        self._lock = Lock()
        self._running: dict[Id, Deadline] = {}

    def take(self, line: bytes) -> None:
        """Begin to answer a line."""
        request_id: Id = None
        try:
            if len(line) > MAX_BODY_BYTES:
                raise McpError(INVALID_REQUEST, f"The line is over {MAX_BODY_BYTES // 1024} KB.")
            message = parse_body(line)
            request_id = read_id(message)
            self._begin(read_call(message, None))
        except Rejection as rejection:
            self._send(McpError.from_rejection(rejection).reply(request_id))
        except McpError as error:
            self._send(error.reply(request_id))

    def _begin(self, call: McpCall) -> None:
        if call.id is not None:
            deadline = self._running[call.id] = Deadline()
            self._pool.submit(self._answer, call, deadline)
        elif call.method == "notifications/cancelled":
            running = self._running.get(read_id({"id": call.params.get("requestId")}))
            if running:
                running.abort()

    def _answer(self, call: McpCall, deadline: Deadline) -> None:
        try:
            reply = answer(call, ToolContext(self._service, deadline))
        except McpError as error:
            reply = error.reply(call.id)
        except ClientDisconnected:
            return
        finally:
            self._running.pop(call.id, None)
        if not deadline.is_aborted:
            self._send(reply)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self._write.write(data)
            self._write.flush()
