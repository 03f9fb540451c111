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
# Tags, fences and lists, which servers put around the JSON of a call.
_WRAPPING = re.compile(r"(?:<[^<>]*+>|\[/?\w*+\]?|```\w*+|[\s,;\]])*+")
_NAME = re.compile(r"\"name\"\s*:\s*\"(\w{1,64})\"")


class CallReader:
    """Puts the calls of one reply together from its pieces. What is no call is left out."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, list[str]]] = []
        self._room = 0

    @property
    def calls(self) -> list[ToolCall]:
        return [ToolCall(name, "".join(pieces) or "{}") for name, pieces in self._calls]

    def begin(self, name: object) -> None:
        if isinstance(name, str) and name and len(self._calls) < _MAX_CALLS:
            self._calls.append((name, []))
            self._room = MAX_ARGUMENT_CHARS + 1

    def extend(self, arguments: object) -> None:
        """Add a piece of the arguments of the last call. More than any call needs is cut, and so is no JSON."""
        text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
        if isinstance(text, str) and self._room:
            piece = text[: self._room]
            self._calls[-1][1].append(piece)
            self._room -= len(piece)

    def read(self, listed: Any) -> None:
        """Take `{"function": {"name", "arguments"}}`, or a list of such, as OpenAI and Cohere send them.

        A piece with a name begins a call: servers number calls in different ways.
        """
        for one in listed if isinstance(listed, list) else [listed]:
            function = one.get("function") if isinstance(one, dict) else None
            if isinstance(function, dict):
                self.begin(function.get("name"))
                self.extend(function.get("arguments"))


def read_search_lines(sentence: str) -> list[ToolCall] | None:
    """Return the searches that a sentence of a reply consists of, one for each line; None if it is no such sentence."""
    lines = [line.strip(_AROUND) for line in sentence.splitlines() if line.strip(_AROUND)]
    if not (lines and lines[0].startswith(SEARCH)):
        return None
    queries = [line.removeprefix(SEARCH).strip(_AROUND) for line in lines if line.startswith(SEARCH)]
    return [ToolCall(SEARCH_TOOL, json.dumps({"query": query})) for query in queries if query]


def read_written_calls(sentence: str, names: Collection[str]) -> list[ToolCall] | None:
    """Return the calls that a sentence of a reply consists of, as servers write them; None if it holds anything else.

    Args:
        names: of the tools that may be called.
    """
    calls, at = list[ToolCall](), _skip_wrapping(sentence, 0)
    while at < len(sentence):
        call, at = _read_json_call(sentence, at)
        if call is None or call.name not in names:
            return None
        calls.append(call)
        at = _skip_wrapping(sentence, at)
    return calls or None


def _skip_wrapping(text: str, at: int) -> int:
    wrapping = _WRAPPING.match(text, at)
    return wrapping.end() if wrapping else at


def _read_json_call(text: str, at: int) -> tuple[ToolCall | None, int]:
    """Return the call at a place, and the place behind it. One that is cut or damaged takes the rest, as no JSON."""
    try:
        read, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        name = _NAME.search(text, at) if text.startswith("{", at) else None
        return (ToolCall(name[1], "") if name else None), len(text)
    function = read.get("function", read) if isinstance(read, dict) else None
    if not (isinstance(function, dict) and isinstance(function.get("name"), str)):
        return None, end
    arguments = function.get("arguments", function.get("parameters"))
    return ToolCall(function["name"], json.dumps(arguments) if isinstance(arguments, dict) else ""), end
