"""Takes a model's reasoning and control characters out of its text.

Some servers send the thoughts of models that reason as text, `<think>…</think>`, and some templates open them before
the model begins, so that only their end arrives: then all before it were thoughts.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps

from chapterverse.errors import ProviderError
from chapterverse.text.utf8 import SURROGATE

#: An answer of 600 tokens is shorter in any language, and each sentence of it has to be checked.
MOST_CHARACTERS = 60_000

# How models that reason mark their thoughts in plain text; servers that know them keep thoughts in a field apart.
_THOUGHT = re.compile(r"\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_MAX_TAG_CHARS = len("</reasoning>")
# Before a tag that is only spoken of.
_QUOTES = frozenset("`\"'“‘„«")

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_controls(text: str) -> str:
    """Return a text without control characters but line feeds and tabs: none belongs into an answer."""
    return _CONTROLS.sub("", text)


def join_surrogates(text: str) -> str:
    """Return a text whose characters beyond 16 bits are whole: they may come in two pieces; UTF-8 can't hold a half."""
    if not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Reasoning:
    """Takes thoughts out of a text that comes in pieces.

    Attributes:
        restarted: whether the last piece ended thoughts that had no mark at their beginning: no text before it belongs
            to the answer.
    """

    def __init__(self) -> None:
        self.restarted = False
        self._lead: str | None = ""
        self._thinks = False
        self._tail = ""
        self._opened = 0

    def read(self, text: str, *, last: bool = False) -> str:
        """Return the answer's text in the next piece."""
        self.restarted = False
        if self._lead is None:
            return self._drop_unopened(text, last=last)
        self._lead += text
        while self._thinks or _THOUGHT.match(self._lead):
            end = _END.search(self._lead)
            self._thinks = end is None
            if end is None:
                # The tag that ends them may come in pieces; thoughts that never end were no answer.
                self._lead = self._lead[-_MAX_TAG_CHARS:]
                return ""
            self._lead = self._lead[end.end() :]
        begun = self._lead.lstrip()
        if not last and (not begun or (begun[0] == "<" and len(begun) < _MAX_TAG_CHARS and ">" not in begun)):
            return ""
        self._lead = None
        return self._drop_unopened(begun, last=last)

    def _drop_unopened(self, text: str, *, last: bool) -> str:
        """Return a text from the last end of thoughts on that has no beginning; all of it without such an end."""
        text, known, start = self._tail + text, len(self._tail), 0
        for tag in _TAG.finditer(text):
            if tag.end() <= known or text[max(0, tag.start() - 1) : tag.start()] in _QUOTES:
                continue
            if not tag[1]:
                self._opened += 1
            elif self._opened:
                self._opened -= 1
            else:
                self.restarted, start = True, tag.end()
        self._tail = text[-_MAX_TAG_CHARS - 1 :]
        if not self.restarted:
            return text[known:]
        # More thoughts may follow, and blanks do.
        self._lead, self._tail = "", ""
        self.restarted = False
        said = self.read(text[start:], last=last)
        self.restarted = True
        return said


def read_all(texts: Steps[str, None, bool]) -> str:
    """Return the whole text of a model.

    Raises:
        ProviderError: it was nothing, or more than any answer; and as `texts` does.
    """
    said, cut = "", False
    while True:
        try:
            said += next(texts)
        except StopIteration as end:
            cut = end.value
            break
        if len(said) > MOST_CHARACTERS:
            raise length_error()
    if text := Reasoning().read(strip_controls(join_surrogates(said)), last=True).strip():
        return text
    raise silence_error(cut)


def length_error() -> ProviderError:
    return ProviderError("The model answered with more than it was asked for.")


def silence_error(cut: bool) -> ProviderError:
    """Return the error for a model that wrote nothing, perhaps because its limit ended its thoughts."""
    if cut:
        return ProviderError(
            "The model spent its whole answer on thoughts: name a model that reasons less, or switch that off."
        )
    return ProviderError("The model answered with nothing: try again.", retryable=True)
