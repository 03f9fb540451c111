"""Reads Cohere's stream: events to spans of text with native citations.

In the mode FAST the event of a citation comes among the text, soon behind its last word
(https://docs.cohere.com/docs/rag-citations, https://docs.cohere.com/docs/rag-streaming). So a sentence waits until a
citation begins behind it, the next sentence is whole too, or the message ends; a citation that comes later than that
is lost, and the check looks for a source by itself.

Nothing of a reply is trusted. Offsets are code points of one content part. A citation whose text is not at its offsets
moves to the text's place, if there is exactly one, or is dropped. `check` checks the ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from chapterverse.ext.cohere.service import COHERE_ERRORS
from chapterverse.ext.net import Event
from chapterverse.ext.net.model_errors import no_reply_error
from chapterverse.text.json_text import SURROGATE
from chapterverse.text.sentences import SentenceReader
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import MAX_COUNTED_TOKENS, ToolCall, Usage
from chapterverse_api.ext.models.wire import MAX_ANSWER_CHARS, CallReader, length_error, silence_error

#: A phrase of an answer of 600 tokens is cited once, from a handful of documents.
_MAX_CITATIONS = 300
_MAX_SOURCES = 20

#: Characters of the next sentence that are needed to see that the previous one ended.
_LOOKAHEAD_CHARS = 24


@dataclass(frozen=True, slots=True)
class _CohereCitation:
    """A range of the answer and the ids that Cohere cites for it."""

    start: int
    end: int
    ids: tuple[str, ...]


class CohereAnswer:
    """Reads one stream to its end.

    Attributes:
        is_over: whether the answer is complete; later events don't matter.
        usage: the billed tokens, if Cohere reports them.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.usage = Usage()
        self._tools = CallReader()
        self._sentences = SentenceReader()
        self._ends: list[int] = []
        # The end of the text whose citations are complete, and the end of the text that was yielded.
        self._cited_end = self._yielded_end = 0
        # The start of each text part in the whole text, by its index; thoughts are no part of it.
        self._starts: dict[Any, int] = {}
        self._thoughts: set[Any] = set()
        self._citations: list[_CohereCitation] = []
        self._is_cut = False

    def read(self, event: Event) -> Iterator[Span]:
        """Take an event and yield the text whose citations are complete.

        Raises:
            ProviderError: it is no event of Cohere's, or reports that the answer failed.
        """
        document = _to_mapping(COHERE_ERRORS.parse_event(event))
        kind, delta = document.get("type") or event.name, _to_mapping(document.get("delta"))
        if delta.get("error") is not None:
            raise COHERE_ERRORS.error_in_reply(delta)
        message = _to_mapping(delta.get("message"))
        if kind in ("content-start", "content-delta"):
            self._read_text(document.get("index"), _to_mapping(message.get("content")))
            yield from self._yield_sentences(self._ends[-2] if len(self._ends) > 1 else 0)
        elif kind == "citation-start":
            self._cite(message.get("citations"))
            start = self._citations[-1].start if self._citations else 0
            yield from self._yield_sentences(max((end for end in self._ends if end <= start), default=0))
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._tools.read(message.get("tool_calls"))
        elif kind == "message-end":
            self._is_cut = COHERE_ERRORS.check_ending(delta.get("finish_reason"), is_ended=True)
            billed = _to_mapping(_to_mapping(delta.get("usage")).get("billed_units"))
            self.usage = Usage(_count(billed.get("input_tokens")), _count(billed.get("output_tokens")))
            self.is_over = True

    def end(self) -> Iterator[Span | ToolCall]:
        """Yield the spans that remain, and the calls of tools.

        Raises:
            ProviderError: the stream ended before the answer did, or held no text.
        """
        if not self.is_over:
            raise COHERE_ERRORS.broken_error()
        if not self._sentences.text.strip() and not self._tools.calls:
            raise silence_error(self._is_cut)
        yield from self._spans(len(self._sentences.text))
        yield from self._tools.calls
        if self._is_cut:
            yield Span("", cut=True)

    def _yield_sentences(self, end: int) -> Iterator[Span]:
        """Yield the sentences up to there, with as much of the next one as shows that they ended."""
        if end > self._cited_end:
            self._cited_end = end
            yield from self._spans(min(end + _LOOKAHEAD_CHARS, len(self._sentences.text)))

    def _spans(self, end: int) -> Iterator[Span]:
        """Yield the text up to there, cut wherever a citation begins or ends."""
        start, self._yielded_end = self._yielded_end, max(end, self._yielded_end)
        citations = [c for c in self._citations if c.end > start and c.start < end]
        borders = {b for c in citations for b in (c.start, c.end) if start < b < end}
        for first, last in pairwise(sorted({start, end, *borders}) if end > start else ()):
            ids = (i for c in citations if c.start <= first and last <= c.end for i in c.ids)
            yield Span(self._sentences.text[first:last], tuple(dict.fromkeys(ids)))

    def _read_text(self, index: Any, content: Mapping[str, Any]) -> None:
        index = _key(index)
        if content.get("type") == "thinking" or content.get("thinking"):
            self._thoughts.add(index)
        text = content.get("text")
        if text is None or index in self._thoughts:
            return
        if not isinstance(text, str):
            raise no_reply_error("Cohere")
        length = len(self._sentences.text)
        self._starts.setdefault(index, length)
        if length + len(text) > MAX_ANSWER_CHARS:
            raise length_error()
        self._ends += [sentence.end for sentence in self._sentences.read(_replace_surrogates(text))]

    def _cite(self, citations: Any) -> None:
        # Cohere documents both forms; its streams hold one object, and its replies a list.
        listed = citations if isinstance(citations, list) else [citations]
        for value in listed[: _MAX_CITATIONS - len(self._citations)]:
            if citation := self._locate(_to_mapping(value)):
                # A citation of the first words of a sentence, which may have been yielded, is one of the sentence.
                is_late = self._cited_end <= citation.start and citation.end <= self._yielded_end
                self._citations.append(replace(citation, end=self._yielded_end + 1) if is_late else citation)

    def _locate(self, citation: Mapping[str, Any]) -> _CohereCitation | None:
        """Return a citation with its range of the text; None if that is unknown, or in a thought."""
        text = self._sentences.text
        ids, index, kind = _ids(citation.get("sources")), _key(citation.get("content_index")), citation.get("type")
        if not ids or index in self._thoughts or kind not in (None, "TEXT_CONTENT"):
            return None
        at = self._stated_range(citation, self._starts.get(index, 0)) or range(0)
        quote = citation.get("text")
        if isinstance(quote, str) and quote:
            quote = _replace_surrogates(quote)
            if text[at.start : at.stop] != quote:
                start = text.find(quote)
                at = range(start, start + len(quote)) if start >= 0 > text.find(quote, start + 1) else range(0)
        return _CohereCitation(at.start, at.stop, ids) if at and at.stop <= len(text) else None

    def _stated_range(self, citation: Mapping[str, Any], base: int) -> range | None:
        start, end = citation.get("start"), citation.get("end")
        # `True` is a number to Python, and huge ones are to no slice.
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= MAX_ANSWER_CHARS:
            return None
        return range(base + start, base + end)


def read_reply_text(body: Any) -> str:
    """Return the text of a reply that is no stream.

    Raises:
        ProviderError: it is no reply of Cohere's, reports a failure, or holds no text.
    """
    if not isinstance(body, dict):
        raise no_reply_error("Cohere")
    content = _to_mapping(body.get("message")).get("content")
    parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    text = "".join(p["text"] for p in parts if p.get("type") == "text" and isinstance(p.get("text"), str))
    is_cut = COHERE_ERRORS.check_ending(body.get("finish_reason"), is_ended=bool(text))
    if not text.strip():
        raise silence_error(is_cut)
    return _replace_surrogates(text)


def _to_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> float:
    """Return a number of tokens; 0 for an invalid one."""
    return value if isinstance(value, int | float) and 0 <= value < MAX_COUNTED_TOKENS else 0.0


def _key(index: Any) -> int | None:
    return index if type(index) is int else None


def _ids(sources: Any) -> tuple[str, ...]:
    """Return the ids of the documents that a citation names, without those of tools' results."""
    ids = []
    for source in map(_to_mapping, sources[:_MAX_SOURCES] if isinstance(sources, list) else []):
        name = source.get("id") or _to_mapping(source.get("document")).get("id")
        if isinstance(name, str) and source.get("type") in (None, "document"):
            ids.append(name)
    return tuple(dict.fromkeys(ids))


def _replace_surrogates(text: str) -> str:
    return SURROGATE.sub("\ufffd", text)
