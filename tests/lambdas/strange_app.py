"""An application whose path selects its misbehavior, for tests of the runtime."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from starlette.types import Message, Receive, Scope, Send

from chapterverse_api.ext.aws.events import LambdaHandler


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    kind = scope["path"].removeprefix("/")
    if kind == "raises":
        raise RuntimeError("a secret of the reader's")
    if kind == "silent":
        return
    if kind == "cookies":
        headers = [(b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"vary", b"a"), (b"vary", b"b")]
        await send(_start("text/plain", 201, (*headers, (b"content-length", b"2"))))
        await send(_body(b"ok", more=False))
    elif kind == "empty":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send(_body(b"", more=False))
    elif kind == "echo":
        request = await receive()
        seen = {"body": request["body"].decode(), "trace": os.environ.get("_X_AMZN_TRACE_ID")}
        seen |= {"id": scope["aws.context"].aws_request_id}
        await send(_start("application/json"))
        await send(_body(json.dumps(seen).encode(), more=False))
    elif kind == "large":
        await send(_start("text/plain"))
        for _ in range(7):
            await send(_body(b"x" * 1024 * 1024))
        await send(_body(b"", more=False))
    elif kind == "gated":
        await send(_start("text/event-stream"))
        await send(_body(b"event: delta\ndata: 1\n\n"))
        while not Path(os.environ["GATE"]).exists():
            await asyncio.sleep(0.01)
        await send(_body(b"event: final\ndata: 2\n\n", more=False))
    elif kind == "breaks":
        await send(_start("text/plain"))
        await send(_body(b"half"))
        raise RuntimeError("a secret of the reader's")
    else:
        await _hang(kind, receive, send)


#: What is sent before it hangs; else the first event of a stream.
_SENT = {
    "hangs-after-final": b"event: final\ndata: 2\n\n",
    "hangs-after-done": b"data: 1\n\ndata: [DONE]\n\n",
    "v1/chat/completions": b"data: 1\n\n",
}


async def _hang(kind: str, receive: Receive, send: Send) -> None:
    """Do nothing for as long as nobody says to stop, after what `kind` names was sent."""
    await receive()
    if kind != "hangs":
        await send(_start("text/plain" if kind == "hangs-in-text" else "text/event-stream"))
        await send(_body(_SENT.get(kind, b"event: meta\n\n")))
    assert (await receive())["type"] == "http.disconnect"
    sys.stdout.write("told to stop\n")


def _start(kind: str, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Message:
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", kind.encode()), *headers],
    }


def _body(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def fail() -> None:
    raise OSError("the index is gone")


handler = LambdaHandler(app, warm=fail)
not_a_handler = app
