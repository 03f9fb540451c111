"""No spelling of a host below any public suffix reaches a reader, whichever way the answer takes."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from api import quill
from api.mcp.calls import headers, modern
from api.scripted import Client
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from chapterverse_api.ext.check.links.host_names import TOP_LEVEL
from ext.check.spellings import spellings, survives

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from top_level_domains import TARGET, rows, suffixes

QUESTION = "Where does Quill keep its cache?"
TRUE = "The cache lives in `.quill/cache` unless `QUILL_CACHE_DIR` names another folder."
#: Spellings of each public suffix; each way to a reader is sent others.
COUNT = 10
#: Spellings of one answer.
BATCH = 400


@dataclass
class Speller:
    """A model that says something true, and then what a test says, in pieces of any size."""

    name: str = "speller"
    texts: Sequence[str] = ()

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        yield Span(TRUE, (request.passages[0].id,))
        draw = random.Random(len(self.texts))
        text = "".join(f"\n\n{text}" for text in self.texts)
        while text:
            size = draw.randint(1, 40)
            yield Span(text[:size])
            text = text[size:]


def chat(client: Client) -> str:
    return _texts(client.post("/v1/chat", {"query": QUESTION}).json())


def stream(client: Client) -> str:
    response = client.request("POST", "/v1/chat", json={"query": QUESTION}, headers={"accept": "text/event-stream"})
    events = _events(response)
    assert "timestamp" in events[-1]
    return "".join(event.get("text", "") for event in events) + _texts(events)


def completions(client: Client) -> str:
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    chunks = _events(client.post("/v1/chat/completions", asked))
    parts = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    return "".join(parts) + _texts(chunks)


def mcp(client: Client) -> str:
    message = modern("tools/call", name="ask_docs", arguments={"question": QUESTION})
    result = client.request("POST", "/mcp", json=message, headers=headers(message)).json()["result"]
    assert not result.get("isError"), result
    return _texts(result)


def _events(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]


def _texts(value: Any) -> str:
    """Return all strings of a JSON value, a line each."""
    if isinstance(value, str):
        return f"\n{value}\n"
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "".join(map(_texts, values))


def batches(seed: int) -> Iterator[list[str]]:
    """Yield spellings of all public suffixes."""
    every = (spelling for suffix in suffixes() for spelling in spellings(suffix, COUNT, seed))
    while batch := list(islice(every, BATCH)):
        yield batch


def test_the_top_level_domains_are_those_of_the_public_suffixes() -> None:
    assert TARGET.read_text(encoding="utf-8") == rows()
    assert len(TOP_LEVEL) > 1400


@pytest.mark.parametrize("ask", [chat, stream, completions, mcp])
def test_no_spelling_of_any_suffix_reaches_a_reader(ask: Callable[[Client], str], index: Path) -> None:
    model = Speller()
    settings = Settings(store=f"edge:{index}", rates="off", mcp=True)
    client = Client(create_app(quill.service(settings, generator=model)))
    count = 0
    for batch in batches(seed=len(ask.__name__)):
        model.texts, count = batch, count + len(batch)
        shown = ask(client)
        assert shown.count("QUILL_CACHE_DIR") > 0
        assert not survives(shown), [text for text in batch if survives(AddressFilter(()).without_foreign(text))]
    assert count >= 10 * 10_000
