"""Removes a model's reasoning and control characters from its text.

Some servers send a model's reasoning as text, `<think>…</think>`. Some templates open it before the model begins, so
that only its end arrives; then all text before that was reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from chapterverse.text.utf8 import SURROGATE
from chapterverse_api.generation.draft import MAX_ANSWER_CHARS, length_error, silence_error

# How models mark their reasoning in plain text; servers that know a model send it in a field of its own.
_START = re.compile(r"\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_MAX_TAG_CHARS = len("</reasoning>")
# Before a tag that is only mentioned.
_QUOTES = frozenset("`\"'“‘„«")

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_controls(text: str) -> str:
    """Return a text without control characters other than line feeds and tabs."""
    return _CONTROLS.sub("", text)


def join_surrogates(text: str) -> str:
    """Return a text with characters beyond 16 bits joined that came as two halves; UTF-8 can't hold a half."""
    if not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class ReasoningFilter:
    """Removes reasoning from a text that comes in pieces.

    Attributes:
        restarted: whether the last piece ended reasoning without a mark at its beginning, so that no text before it
            belongs to the answer.
    """

    def __init__(self) -> None:
        self.restarted = False
        # The beginning of the answer, until it is known that no reasoning is in it.
        self._lead: str | None = ""
        self._is_open = False
        self._tail = ""
        self._open_tags = 0

    def read(self, text: str, *, last: bool = False) -> str:
        """Return the answer's text in the next piece."""
        self.restarted = False
        if self._lead is None:
            return self._drop_unopened(text, last=last)
        self._lead += text
        while self._is_open or _START.match(self._lead):
            end = _END.search(self._lead)
            self._is_open = end is None
            if end is None:
                # The tag that ends it may come in pieces. A text that is all reasoning is no answer.
                self._lead = self._lead[-_MAX_TAG_CHARS:]
                return ""
            self._lead = self._lead[end.end() :]
        lead = self._lead.lstrip()
        if not last and (not lead or (lead[0] == "<" and len(lead) < _MAX_TAG_CHARS and ">" not in lead)):
            return ""
        self._lead = None
        return self._drop_unopened(lead, last=last)

    def _drop_unopened(self, text: str, *, last: bool) -> str:
        """Return a text from the last end of reasoning without a beginning on; all of it if there is no such end."""
        text, tail_length, start = self._tail + text, len(self._tail), 0
        for tag in _TAG.finditer(text):
            if tag.end() <= tail_length or text[max(0, tag.start() - 1) : tag.start()] in _QUOTES:
                continue
            if not tag[1]:
                self._open_tags += 1
            elif self._open_tags:
                self._open_tags -= 1
            else:
                self.restarted, start = True, tag.end()
        self._tail = text[-_MAX_TAG_CHARS - 1 :]
        if not self.restarted:
            return text[tail_length:]
        # More reasoning may follow, and blanks do.
        self._lead, self._tail = "", ""
        self.restarted = False
        answer = self.read(text[start:], last=last)
        self.restarted = True
        return answer


def read_all(texts: Generator[str, None, bool]) -> str:
    """Return the whole text of a model.

    Raises:
        ProviderError: it is empty, or longer than any answer; or for the reasons of `texts`.
    """
    text, cut = "", False
    while True:
        try:
            text += next(texts)
        except StopIteration as end:
            cut = end.value
            break
        if len(text) > MAX_ANSWER_CHARS:
            raise length_error()
    if answer := ReasoningFilter().read(strip_controls(join_surrogates(text)), last=True).strip():
        return answer
    raise silence_error(cut)
