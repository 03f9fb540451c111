"""A stand-in for Cohere that answers concurrent requests after 50 ms each; started by `load.py`.

One event loop without threads takes little CPU from the measured service.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import zlib
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from typing import Any

SECONDS = 0.05
DIMENSIONS = 384
SENTENCES = 4


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", file=sys.stderr, flush=True)
    async with server:
        await server.serve_forever()


async def serve(reader: StreamReader, writer: StreamWriter) -> None:
    """Answer the requests of one connection in sequence."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            body = json.loads(await reader.readexactly(int(length[1]) if length else 0))
            await asyncio.sleep(SECONDS)
            writer.write(reply(head.split(b" ")[1].decode(), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def reply(path: str, body: Any) -> bytes:
    if path == "/v2/chat":
        events = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in answer(body["documents"]))
        return response("text/event-stream", events)
    document = embedded(body["texts"]) if path == "/v2/embed" else ranked(len(body["documents"]))
    return response("application/json", json.dumps(document).encode())


def response(kind: str, body: bytes) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def embedded(texts: list[str]) -> dict[str, Any]:
    return {
        "id": "load",
        "embeddings": {"float": [vector(text) for text in texts]},
        "texts": texts,
        "response_type": "embeddings_by_type",
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 10 * len(texts)}},
    }


def vector(text: str) -> list[float]:
    """Return a normalized bag of hashed words: texts that share words are near each other."""
    counts = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [round(count / length, 6) for count in counts]


def ranked(texts: int) -> dict[str, Any]:
    """Return a ranking that keeps the order."""
    results = [{"index": i, "relevance_score": round(0.99 / (1 + i / 4), 6)} for i in range(texts)]
    return {"id": "load", "results": results, "meta": {"billed_units": {"search_units": 1}}}


def answer(documents: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer that quotes and cites sentences of the first document."""
    quotes = re.findall(r"The [^.\n]{20,}\.", documents[0]["data"]["snippet"])[:SENTENCES]
    yield {"type": "message-start", "id": "load", "delta": {"message": {"role": "assistant", "content": []}}}
    yield {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}}
    at = 0
    for index, quote in enumerate(quotes):
        for piece in re.findall(r"\s*\S+", f" {quote}" if index else quote):
            yield {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
        # Behind its words, as in the mode FAST.
        yield {
            "type": "citation-start",
            "index": index,
            "delta": {"message": {"citations": cited(at, quote, documents[0])}},
        }
        yield {"type": "citation-end", "index": index}
        at += len(quote) + 1
    yield {"type": "content-end", "index": 0}
    usage = {
        "billed_units": {"input_tokens": 900, "output_tokens": 60},
        "tokens": {"input_tokens": 1400, "output_tokens": 62},
    }
    yield {"type": "message-end", "id": "load", "delta": {"finish_reason": "COMPLETE", "usage": usage}}


def cited(start: int, quote: str, document: Any) -> dict[str, Any]:
    source = {"type": "document", "id": document["id"], "document": {"id": document["id"]}}
    return {
        "start": start,
        "end": start + len(quote),
        "text": quote,
        "sources": [source],
        "content_index": 0,
        "type": "TEXT_CONTENT",
    }


if __name__ == "__main__":
    asyncio.run(main())
