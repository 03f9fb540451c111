"""Reads the calls of tools in a model's reply: on the wire, in pieces, and as text by a model that has no other way."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from chapterverse_api.generation.prompts import SEARCH, SEARCH_TOOL
from chapterverse_api.generation.requests import ToolCall

#: Characters of a call's arguments, and calls of one reply, that are read.
MAX_ARGUMENT_CHARS, _MAX_CALLS = 8_000, 32

# Items, quotes and stress, which models put around the line.
_AROUND = " \t*_`\"'>#-"
_NAMED = re.compile(r"\{\s*\"name\"\s*:\s*\"(\w{1,64})\"")


class CallReader:
    """Puts the calls of one reply together from its pieces. What is no call is left out."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, list[str]]] = []

    @property
    def calls(self) -> list[ToolCall]:
        return [ToolCall(name, "".join(pieces) or "{}") for name, pieces in self._calls]

    def begin(self, name: object) -> None:
        if isinstance(name, str) and name and len(self._calls) < _MAX_CALLS:
            self._calls.append((name, []))

    def extend(self, arguments: object) -> None:
        """Add a piece of the arguments of the last call. More than any call needs is cut, and so is no JSON."""
        text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
        if isinstance(text, str) and self._calls:
            pieces = self._calls[-1][1]
            pieces.append(text[: max(0, MAX_ARGUMENT_CHARS + 1 - sum(map(len, pieces)))])

    def read(self, listed: Any) -> None:
        """Take `{"function": {"name", "arguments"}}`, or a list of such, as OpenAI and Cohere send them.

        A piece with a name begins a call: servers number calls in different ways.
        """
        for one in listed if isinstance(listed, list) else [listed]:
            function = one.get("function") if isinstance(one, dict) else None
            if isinstance(function, dict):
                self.begin(function.get("name"))
                self.extend(function.get("arguments"))


def read_written_calls(sentence: str, names: Collection[str]) -> list[ToolCall] | None:
    """Return the calls that a sentence of a reply consists of, one for each line; None if it is no call.

    Args:
        names: of tools: some servers send a call of one as text.
    """
    lines = [line.strip(_AROUND) for line in sentence.splitlines() if line.strip(_AROUND)]
    if lines and lines[0].startswith(SEARCH):
        queries = [line.removeprefix(SEARCH).strip(_AROUND) for line in lines if line.startswith(SEARCH)]
        return [ToolCall(SEARCH_TOOL, json.dumps({"query": query})) for query in queries if query]
    starts = [named for named in _NAMED.finditer(sentence) if named[1] in names]
    return [ToolCall(named[1], _written_arguments(sentence[named.start() :])) for named in starts] or None


def _written_arguments(text: str) -> str:
    """Return the arguments in the JSON of a call, as JSON; nothing if the call is cut or damaged."""
    try:
        call, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return ""
    arguments = call.get("arguments", call.get("parameters"))
    return json.dumps(arguments) if isinstance(arguments, dict) else ""
