"""Removes a model's reasoning and control characters from its text.

Some servers send a model's reasoning as text, `<think>…</think>`. Some templates open it before the model begins, so
that only its end arrives; then all text before that was reasoning.
"""

from __future__ import annotations

import re

from chapterverse.text.utf8 import SURROGATE
from chapterverse_api.generation.draft import MAX_ANSWER_CHARS, ModelText, length_error, silence_error
from chapterverse_api.generation.marks import ANSWER_END, ANSWER_START, MAX_MARK_CHARS, REASONING

_STARTS = [
    (re.compile(rf"(?<!\s)\s*+(?:{m.start})", re.IGNORECASE), re.compile(m.end, re.IGNORECASE)) for m in REASONING
]
_TAG = re.compile(
    f"(?P<end>{'|'.join(m.end for m in REASONING)})|{'|'.join(m.start for m in REASONING)}", re.IGNORECASE
)
_ANSWER_START = re.compile(rf"\s*(?:{ANSWER_START})", re.IGNORECASE)
_ANSWER_END = re.compile(rf"""(?<![`"'“‘„«])(?:{ANSWER_END})\s*\Z""", re.IGNORECASE)
# A mark that has begun: the rest of it may come with the next piece.
_BEGUN = re.compile(r"<\|(?:start|channel)\b(?!.*<\|message\|>)|[<\[◁](?!.*[>\]▷])", re.DOTALL)
_MAX_BEGUN_CHARS = 24
_WORD = "analysis"
# How marks end; a piece without that ends none, and most are.
_MARK_END = re.compile(r"[>\]▷]")
_WORD_CHARS = len("assistantfinal")
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
        self._end: re.Pattern[str] | None = None
        self._tail = ""
        self._open_tags = 0

    def read(self, text: str, *, last: bool = False) -> str:
        """Return the answer's text in the next piece."""
        self.restarted = False
        if self._lead is None:
            return self._drop_unopened(text, last=last)
        self._lead += text
        while self._end or self._open():
            end = self._end.search(self._lead) if self._end else None
            if end is None:
                # The tag that ends it may come in pieces. A text that is all reasoning is no answer.
                self._lead = self._lead[-MAX_MARK_CHARS:]
                return ""
            self._lead, self._end = self._lead[end.end() :], None
        lead = self._lead[start.end() :] if (start := _ANSWER_START.match(self._lead)) else self._lead
        lead = lead.lstrip()
        if not last and _may_begin_mark(lead):
            return ""
        self._lead = None
        return self._drop_unopened(lead, last=last)

    def _open(self) -> bool:
        """Whether the lead begins with reasoning, which is cut off up to there."""
        for start, end in _STARTS:
            if match := start.match(self._lead or ""):
                self._lead, self._end = (self._lead or "")[match.end() :], end
                return True
        return False

    def _drop_unopened(self, text: str, *, last: bool) -> str:
        """Return a text from the last end of reasoning without a beginning on; all of it if there is no such end."""
        tail_length, start = len(self._tail), 0
        has_end = _MARK_END.search(text) is not None or "final" in f"{self._tail[-_WORD_CHARS:]}{text}"
        text = self._tail + text
        for tag in _TAG.finditer(text) if has_end else ():
            if tag.end() <= tail_length or text[max(0, tag.start() - 1) : tag.start()] in _QUOTES:
                continue
            if tag["end"] is None:
                self._open_tags += 1
            elif self._open_tags:
                self._open_tags -= 1
            else:
                self.restarted, start = True, tag.end()
        self._tail = text[-MAX_MARK_CHARS:]
        if not self.restarted:
            return text[tail_length:]
        # More reasoning may follow, and blanks do.
        self._lead, self._tail = "", ""
        self.restarted = False
        answer = self.read(text[start:], last=last)
        self.restarted = True
        return answer


def _may_begin_mark(lead: str) -> bool:
    """Whether the beginning of an answer may turn out to be a mark."""
    if not lead or _WORD.startswith(lead):
        return True
    begun = _BEGUN.match(lead)
    return begun is not None and len(lead) < (MAX_MARK_CHARS if begun.group().startswith("<|") else _MAX_BEGUN_CHARS)


def without_end_mark(text: str) -> str:
    """Return a sentence without the mark by which a model's template ends a turn."""
    return _ANSWER_END.sub("", text)


def read_all(texts: ModelText) -> str:
    """Return the whole text of a model.

    Raises:
        ProviderError: it is empty, or longer than any answer; or for the reasons of `texts`.
    """
    text, cut = "", False
    while True:
        try:
            piece = next(texts)
            text += piece if isinstance(piece, str) else ""
        except StopIteration as end:
            cut = end.value
            break
        if len(text) > MAX_ANSWER_CHARS:
            raise length_error()
    text = ReasoningFilter().read(strip_controls(join_surrogates(text)), last=True)
    if answer := without_end_mark(text).strip():
        return answer
    raise silence_error(cut)
