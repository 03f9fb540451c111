"""Reads the calls of tools in a model's reply: on the wire, in pieces, and as text by a model that has no other way."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from chapterverse_api.draft.requests import ToolCall
from chapterverse_api.ext.models.prompts import SEARCH, SEARCH_TOOL

#: Characters of a call's arguments, and calls of one reply, that are read.
_MAX_ARGUMENT_CHARS, _MAX_CALLS = 8_000, 32

# Items, numbers, quotes and stress, which models put around the line.
_AROUND = " \t*_`\"'>#-"
_SEARCH_LINE = re.compile(rf"^[{re.escape(_AROUND)}\d.)]*+{SEARCH[:-1]}[*_`]{{0,3}}[:：](.*)$", re.MULTILINE)
# The beginning of a call whose end is missing.
_CUT_CALL = re.compile(r'\{[\s{:,"typefunction]{0,60}?"name"\s*+:\s*+"(\w{1,64})"')
#: JSON objects of one reply that are looked at.
_MAX_OBJECTS = 64


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
            self._room = _MAX_ARGUMENT_CHARS + 1

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


def read_written_calls(text: str, names: Collection[str]) -> list[ToolCall]:
    """Return the calls that a reply holds as text: lines of searches, or JSON as servers write it.

    Args:
        text: a whole reply that is no answer. In an answer such a line may be an item, and such code an example.
        names: of the tools that may be called.
    """
    queries = [match[1].strip(_AROUND) for match in _SEARCH_LINE.finditer(text)]
    searches = [ToolCall(SEARCH_TOOL, json.dumps({"query": query})) for query in queries if query]
    return searches or [call for call in _read_json_calls(text) if call.name in names]


def _read_json_calls(text: str) -> Iterator[ToolCall]:
    at = text.find("{")
    for _ in range(_MAX_OBJECTS):
        if at < 0:
            return
        call, at = _read_json_call(text, at)
        if call:
            yield call
        at = text.find("{", at)


def _read_json_call(text: str, at: int) -> tuple[ToolCall | None, int]:
    """Return the call at a place, and the place behind it. One that is cut or damaged takes the rest, as no JSON."""
    try:
        read, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        name = _CUT_CALL.match(text, at)
        return (ToolCall(name[1], ""), len(text)) if name else (None, at + 1)
    function = read.get("function", read)
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        return None, end
    arguments = function.get("arguments", function.get("parameters", ""))
    return ToolCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments)), end
