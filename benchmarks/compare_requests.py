"""What `compare.py` asks a service over HTTP besides its questions, and how it reads a reply."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

#: The only origin that may ask, besides programs that name none.
ORIGIN = "https://reader.example"

_FOREIGN = {"Origin": "https://foreign.example"}
_SELECTED = "Run `make`, which takes 5 minutes."

#: Method, path, body and headers. A body that is a text is sent as it is, any other one as JSON.
REQUESTS: tuple[tuple[str, str, Any, dict[str, str]], ...] = (
    *(("GET", path, None, {}) for path in ("/openapi.json", "/v1/health", "/v1/status", "/v1/schema", "/v1/nothing")),
    *(("GET", path, None, {}) for path in ("/widget/launcher.js", "/widget/nothing.js", "/", "/v1/chat")),
    ("GET", "/v1/status", None, _FOREIGN),
    ("OPTIONS", "/v1/chat", None, {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}),
    ("OPTIONS", "/v1/chat", None, {**_FOREIGN, "Access-Control-Request-Method": "POST"}),
    ("POST", "/v1/chat", {"query": "x"}, _FOREIGN),
    ("POST", "/v1/chat", "{", {}),
    ("POST", "/v1/chat", "[" * 9000, {}),
    ("POST", "/v1/chat", " " * 200_000, {}),
    ("POST", "/v1/chat", '{"query": "x"}', {"Content-Type": "text/plain"}),
    *(
        ("POST", "/v1/chat", body, {"Origin": ORIGIN})
        for body in (
            {},
            {"query": ""},
            {"query": "x" * 4001},
            {"query": "x", "more": 1},
            {"query": "how to install", "top_k": 21},
            {"query": "how to install", "top_k": 1, "language": "de", "user_context": "I use Windows."},
            {"query": "how to install", "filters": {"type": "page", "url": {"$prefix": "https://"}}},
            {"query": "how to install", "filters": {"nothing": 1}},
            {"query": "how to install", "version": "none such"},
            {"selected_text": f"Install it. {_SELECTED}"},
            {"query": "how long does it take", "selected_text": _SELECTED, "page_url": "https://docs.example/"},
            {"query": "weather on mars", "selected_text": _SELECTED},
        )
    ),
    ("POST", "/v1/retrieve", {"query": "install", "threshold": 2}, {}),
    ("POST", "/v1/retrieve", {"embedding": [0.5, 0.5]}, {}),
    ("POST", "/v1/retrieve", {"query": "install", "top_k": 3, "threshold": 0.2, "filters": {"language": "en"}}, {}),
    ("POST", "/v1/feedback", {"turn_id": "0" * 32, "rating": "up"}, {}),
    ("POST", "/v1/feedback", {"turn_id": "0", "rating": "up"}, {}),
    ("DELETE", "/v1/threads/t0", None, {}),
    ("POST", "/v1/plans", {"query": "how to install"}, {}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"Accept": "application/json"}),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "how to install"}]}, {}),
)


def reply(
    service: http.client.HTTPConnection, method: str, path: str, sent: Any = None, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """Ask, and return status, headers and body: JSON and the events of a stream are read."""
    body = sent if sent is None or isinstance(sent, str) else json.dumps(sent)
    service.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
    replied = service.getresponse()
    told = {name.lower(): value for name, value in replied.getheaders()}
    kind, text = told.get("content-type", ""), replied.read().decode()
    content = json.loads(text) if "json" in kind else _events(text) if "event-stream" in kind else text
    return {"status": replied.status, "headers": told, "body": content}


def _events(text: str) -> list[Any]:
    """Return the events of a stream; texts in a row are one, since the clock decides how many they come in."""
    events: list[Any] = []
    for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n", text):
        event = json.loads(data)
        if events and events[-1][0] == name == "delta" and event.keys() == {"text"}:
            events[-1][1]["text"] += event["text"]
        else:
            events.append([name, event])
    return events
