"""Compares a search over MCP with a plain one: `mcp_search.py [--chunks 10000] [--questions 200] [--rounds 3]`.

Publishes an index of that many chunks of about 1 kB to a folder. Each question of four words goes to `POST /mcp`, as a
call of `search_docs`, and to `POST /v1/retrieve`, in turns and in one process, through the whole application but no
socket. Prints the median milliseconds of each and their ratio, by the clock and by processor time. The bar: 1.2 by the
clock; the exit code is 3 if it is missed. The work on a question that was asked before is remembered by neither.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from typing import Any

import httpx
from opening import prose, publish

BAR = 1.2
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
}
HEADERS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "search_docs"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        publish(f"edge:{folder}", arguments.chunks, 0)
        questions = [prose(random.Random(n), 4) for n in range(arguments.questions)]
        return asyncio.run(compare(folder, questions, arguments.rounds))


async def compare(folder: str, questions: list[str], rounds: int) -> int:
    from chapterverse.settings import Settings
    from chapterverse_api.app import create_app

    application = create_app(settings=Settings(store=f"edge:{folder}", mcp=True, rates="off"))
    transport = httpx.ASGITransport(app=application)
    taken: dict[str, list[tuple[float, float]]] = {"mcp": [], "retrieve": []}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for turn in range(rounds + 1):
            for number, question in enumerate(questions):
                for name in sorted(taken, reverse=number % 2 == 1):
                    # A round's first words make each question new.
                    times = await ask(client, name, f"{question} {prose(random.Random(1000 * turn + number), 1)}")
                    # The first round warms up.
                    taken[name] += [times] if turn else []
    clock, processor = ({n: statistics.median(f[at] for f in each) for n, each in taken.items()} for at in (0, 1))
    for label, figures in (("by the clock", clock), ("by processor time", processor)):
        ratio = figures["mcp"] / figures["retrieve"]
        print(f"{label}: search_docs {figures['mcp']:.2f} ms, retrieve {figures['retrieve']:.2f} ms, ratio {ratio:.2f}")
    missed = clock["mcp"] > BAR * clock["retrieve"]
    print("bar missed" if missed else "bar met")
    return 3 if missed else 0


async def ask(client: httpx.AsyncClient, name: str, question: str) -> tuple[float, float]:
    """Return the milliseconds of a search by the clock and by processor time."""
    body: dict[str, Any] = {"query": question}
    path, headers = "/v1/retrieve", dict[str, str]()
    if name == "mcp":
        params = {"name": "search_docs", "arguments": body, "_meta": META}
        path, headers = "/mcp", HEADERS
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    content = json.dumps(body).encode()
    clock, processor = time.perf_counter(), time.process_time()
    response = await client.post(path, content=content, headers={"content-type": "application/json", **headers})
    figures = 1000 * (time.perf_counter() - clock), 1000 * (time.process_time() - processor)
    found = response.json()
    assert response.status_code == 200, found
    assert found["result"]["structuredContent"]["results"] if name == "mcp" else found["retrieved_chunks"], found
    return figures


if __name__ == "__main__":
    sys.exit(main())
