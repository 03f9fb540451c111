"""Two model servers on loopback for `compare.py`: OpenAI's protocol and Cohere's, from one address.

An answer is made of the sources that it is asked about and depends on nothing else. It holds what a check of answers
has to tell apart: sentences of a source, sentences that were changed, some that no source has, marks of many forms,
code, lists, addresses from elsewhere, thoughts, refusals. It comes in pieces that cut words and marks.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from load_provider import embedded

_SOURCE = re.compile(r'<cv-source-(\w+) number="(\w+)">\n(.*?)\n</cv-source-\1>', re.DOTALL)
_SENTENCE = re.compile(r"[^\s#|`>*-][^.\n|`]{25,200}\.(?=\s)")
_PIECE = 7

Sources = list[tuple[str, str]]


class Models:
    """Both servers, as a context; `taken` returns what they were asked since it was called last."""

    def __init__(self) -> None:
        asked: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append([self.path, body])
                kind, content = reply(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None: ...

        self._asked = asked
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Models:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def taken(self) -> list[Any]:
        asked = self._asked.copy()
        self._asked.clear()
        return asked


def reply(path: str, body: Any) -> tuple[str, bytes]:
    """Return the media type and the content of a reply."""
    if path == "/v2/embed":
        return _json(embedded(body["texts"]))
    if path == "/v2/rerank":
        return _json(_ranked(body["query"], body["documents"], body.get("top_n")))
    said = [message["content"] for message in body["messages"]]
    if not body["stream"]:
        # A question in full, or a summary: neither has sources.
        text = " ".join(said[-1].split()[-30:])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return _json({"choices": [choice], "message": {"content": [{"type": "text", "text": text}]}})
    question = said[-1].rpartition("\n")[2]
    if path == "/v2/chat":
        sources = [(document["id"], document["data"]["snippet"]) for document in body["documents"]]
        return _stream(_cohere(answer(question, sources, marks=False), sources))
    sources = [(number, text) for _, number, text in _SOURCE.findall(said[-1])]
    return _stream(_openai(answer(question, sources, marks=True)))


def answer(question: str, sources: Sources, *, marks: bool) -> str:
    """Return an answer, of a kind that the question's letters decide.

    Args:
        marks: whether citations stand in the text, as `[1]`.
    """
    chance = zlib.crc32(question.encode())
    found = [(number, " ".join(s.split())) for number, text in sources for s in _SENTENCE.findall(text)[:2]]
    if chance % 11 == 0 or not found:
        return "NOT_IN_DOCS"
    (a, one), (b, two), (c, three) = (found[(chance + n) % len(found)] for n in range(3))
    parts = [
        f"{one[:-1]} [{a}].",
        f"{two} [{a}][{b}]",
        f"{re.sub('[0-9]', '7', two)[:-1]} [{b}].",
        f"{three[:-1].replace(' is ', ' is not ', 1).replace(' can ', ' cannot ', 1)}[{c}].",
        f"In short, {one[0].lower()}{one[1:-1]}, and {three[0].lower()}{three[1:-1]} [{a}, {c}][99].",
        f"It was invented in {1900 + chance % 99} by three sisters [{b}].",
        f"- {one} [{a}]\n- {three} 【{c}】\n",
        f"See [the page](https://elsewhere.example/{chance % 9}) or <https://docs.example/nowhere> [{a}].",
        f"```sh\n{two}\n```",
        f"Run `{one.split()[0]}` first [{a}].",
        "The sources do not say how long it takes.",
        "That is all.",
    ]
    # A quarter of them: so some answers are right from end to end.
    chosen = [parts[0], *(part for n, part in enumerate(parts[1:]) if chance >> n & 3 == 0)]
    thought = "<think>The reader wants [1] to know.</think>" if chance % 5 == 0 else ""
    text = thought + "\n\n".join(chosen)
    return text if marks else re.sub(r" ?(\[[\d, ]+\]|【\w+】)", "", text)


def _openai(text: str) -> Iterator[dict[str, Any]]:
    for piece in _pieces(text):
        yield {"choices": [{"index": 0, "delta": {"content": piece}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def _cohere(text: str, sources: Sources) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer of which two sentences of three are cited, by two sources at most."""
    yield {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant", "content": []}}}
    yield {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}}
    for piece in _pieces(text):
        yield {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
    yield {"type": "content-end", "index": 0}
    for index, said in enumerate(re.finditer(r"[^.\n]{12,}\.", text)):
        ids = [number for number, source in sources if said[0][:30] in " ".join(source.split())] or [sources[0][0]]
        cited = {
            "start": said.start(),
            "end": said.end(),
            "text": said[0],
            "sources": [{"type": "document", "id": i, "document": {"id": i}} for i in ids[:2]],
            "content_index": 0,
            "type": "TEXT_CONTENT",
        }
        if index % 3 < 2:
            yield {"type": "citation-start", "index": index, "delta": {"message": {"citations": cited}}}
            yield {"type": "citation-end", "index": index}
    tokens = {"input_tokens": 900, "output_tokens": 60}
    usage = {"billed_units": tokens, "tokens": tokens}
    yield {"type": "message-end", "id": "x", "delta": {"finish_reason": "COMPLETE", "usage": usage}}


def _pieces(text: str) -> Iterator[str]:
    return (text[n : n + _PIECE] for n in range(0, len(text), _PIECE))


def _ranked(query: str, documents: list[str], most: int | None) -> dict[str, Any]:
    """Rank by the share of the question's words; of equals the last one goes first, which no other part does."""
    words = set(re.findall(r"\w+", query.lower()))
    scores = [len(words & set(re.findall(r"\w+", text.lower()))) / (len(words) or 1) for text in documents]
    order = sorted(range(len(documents)), key=lambda n: (-scores[n], -n))[:most]
    results = [{"index": n, "relevance_score": round(0.05 + 0.9 * scores[n], 6)} for n in order]
    return {"id": "x", "results": results, "meta": {"billed_units": {"search_units": 1}}}


def _json(body: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(body).encode()


def _stream(events: Iterator[dict[str, Any]]) -> tuple[str, bytes]:
    frames = (f"{_name(event)}data: {json.dumps(event)}\n\n" for event in events)
    return "text/event-stream", "".join(frames).encode()


def _name(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\n" if "type" in event else ""
