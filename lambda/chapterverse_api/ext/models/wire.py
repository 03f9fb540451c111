"""What providers of models have in common: messages, tools and their calls, replies in pieces, scores of texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any, TypeAlias

from chapterverse.errors import AnswerWithheld, ProviderError
from chapterverse.text.tokens import cut_to_bytes
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import ModelRequest, ToolCall, ToolSpec
from chapterverse_api.ext.check.links.address_filter import strip_controls
from chapterverse_api.ext.models.prompts import SEARCH, SEARCH_TOOL
from chapterverse_api.ext.models.reasoning import ReasoningFilter, join_surrogates, without_end_mark
from chapterverse_api.search.rerankers import MAX_REQUEST_TEXTS, MAX_TEXT_BYTES

#: An answer of 600 tokens is shorter in any language, and each sentence of it has to be checked.
MAX_ANSWER_CHARS = 60_000
#: The text of a model as it comes, and last the tools that it calls; returns whether its limit of length ended it.
ModelText: TypeAlias = Generator[str | ToolCall, None, bool]


def to_spans(texts: ModelText) -> Generator[Span | ToolCall, None, None]:
    """Yield a model's text as spans, and its calls; `texts` is closed at the end."""
    with closing(texts):
        while True:
            try:
                piece = next(texts)
                yield Span(piece) if isinstance(piece, str) else piece
            except StopIteration as end:
                if end.value:
                    yield Span("", cut=True)
                return


def length_error() -> ProviderError:
    return ProviderError("The model answered with more than it was asked for.")


def read_all(texts: ModelText) -> str:
    """Return the whole text of a model.

    Raises:
        ProviderError: it is empty, or longer than any answer; or for the reasons of `texts`.
    """
    text, cut = "", False
    for span in to_spans(texts):
        if isinstance(span, Span):
            text, cut = text + span.text, span.cut
        if len(text) > MAX_ANSWER_CHARS:
            raise length_error()
    text = ReasoningFilter().read(strip_controls(join_surrogates(text)), last=True)
    if answer := without_end_mark(text).strip():
        return answer
    raise silence_error(cut)


def chat_messages(request: ModelRequest) -> list[dict[str, str]]:
    """Return the messages of a request in OpenAI's form, which Cohere takes, too."""
    messages = ({"role": m.role, "content": m.content} for m in request.messages)
    return [{"role": "system", "content": request.instructions}, *messages]


def function_specs(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools of a request in the same form."""
    return [{"type": "function", "function": asdict(tool)} for tool in tools]


def score_texts(texts: Sequence[str], send: Callable[[Sequence[str]], list[float]]) -> list[float]:
    """Return one score a text, in order; a blank one is never sent, as models refuse those, and has 0.

    Of a text that is too long, only the beginning is sent.

    Args:
        send: one request of at most 100 texts.

    Raises:
        ProviderError: as `send` says.
    """
    scores = [0.0] * len(texts)
    beginnings = [cut_to_bytes(text, MAX_TEXT_BYTES) for text in texts]
    indexes = [i for i, text in enumerate(beginnings) if text.strip()]
    for start in range(0, len(indexes), MAX_REQUEST_TEXTS):
        part = indexes[start : start + MAX_REQUEST_TEXTS]
        for i, score in zip(part, send([beginnings[i] for i in part]), strict=True):
            scores[i] = score
    return scores


def read_scores(reply: Any, count: int, provider: str) -> list[float]:
    """Return the scores of a reply, each where its `index` says; Cohere's format, on Bedrock too.

    Args:
        reply: the parsed body, best text first.
        count: how many texts were sent.
        provider: the service's name, for the message.

    Raises:
        ProviderError: a text has no score or two, or a score is no number from 0 to 1.
    """
    results = reply.get("results") if isinstance(reply, dict) else None
    entries = [r for r in results if isinstance(r, dict)] if isinstance(results, list) else []
    # By type, as True is an int too; NaN is in no range.
    scores: dict[int, Any] = {r["index"]: r.get("relevance_score") for r in entries if type(r.get("index")) is int}
    # Each index once, and no other: else a score might belong to another text.
    is_complete = isinstance(results, list) and len(results) == count and scores.keys() == set(range(count))
    if not is_complete or not all(type(s) in (float, int) and 0 <= s <= 1 for s in scores.values()):
        raise ProviderError(f"{provider} answered with something that is no ranking of {count} texts.")
    return [float(scores[i]) for i in range(count)]


def silence_error(cut: bool) -> ProviderError:
    """Return the error for a model that wrote nothing, perhaps because its limit ended its reasoning.

    Without the limit it is this question that gets no answer: services withhold one also by an empty text.
    """
    if cut:
        return ProviderError(
            "The model spent its whole answer on thoughts: name a model that reasons less, or switch that off."
        )
    return AnswerWithheld("The model answered with nothing: ask in other words.")


def damage_error() -> ProviderError:
    """Return the error for a text that lost parts of characters, which a reader can ask for."""
    return AnswerWithheld("The model answered with damaged characters: ask again.")


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
