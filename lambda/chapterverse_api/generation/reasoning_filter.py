"""Strips reasoning and control characters from a model's output.

Some servers send the thoughts of models that reason as text, `<think>…</think>`, and some templates open them before
the model begins, so that only their end arrives. What was shown by then can't be unsaid, but is no part of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps
from collections.abc import Iterator

from chapterverse.errors import ProviderError

#: More is no answer of 600 tokens, whatever the language, and each sentence of it is still to be checked.
MOST_CHARACTERS = 60_000

# How models that reason mark their thoughts in plain text; servers that know them keep thoughts in a field apart.
_THOUGHT = re.compile(r"\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_END = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_EITHER = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_TAGS = tuple(f"<{slash}{name}>" for slash in ("", "/") for name in ("think", "thinking", "reasoning"))
_LONGEST = max(map(len, _TAGS))
# Before a tag that is only spoken of.
_QUOTES = frozenset("`\"'“‘„«")

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Restart(str):
    """A piece with which the answer begins anew: all that was said before it were thoughts."""

    __slots__ = ()


def visible(text: str) -> str:
    """Return a text without control characters but line feeds and tabs: none belongs into an answer."""
    return _CONTROLS.sub("", text)


def without_reasoning(texts: Steps[str, None, bool]) -> Steps[str, None, bool]:
    """Pass a model's pieces on; blanks before the first word are left out. Returns what `texts` returns.

    Thoughts whose beginning was not marked are known as such at their end; the next piece is an `Restart` then.

    A character beyond 16 bits may come in two pieces; half a one that stays alone becomes a replacement character, as
    UTF-8 can't hold it.

    Raises:
        ProviderError: it is longer than any answer; and as `texts` does.
    """
    aloud, half, left = _ReasoningFilter(), "", MOST_CHARACTERS
    while True:
        try:
            text = half + next(texts)
        except StopIteration as end:
            yield from aloud.read(_mended(half), last=True)
            cut: bool = end.value
            return cut
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        for said in aloud.read(visible(_mended(text[: len(text) - len(half)]))):
            left -= len(said)
            if left < 0:
                raise ProviderError("The model answered with more than it was asked for.")
            yield said


def written(texts: Steps[str, None, bool]) -> str:
    """Return all that is said.

    Raises:
        ProviderError: it was nothing; and as `texts` does.
    """
    pieces: list[str] = []
    steps = without_reasoning(texts)
    while True:
        try:
            piece = next(steps)
        except StopIteration as end:
            cut: bool = end.value
            break
        if isinstance(piece, Restart):
            pieces.clear()
        pieces.append(piece)
    if text := "".join(pieces).strip():
        return text
    raise silent(cut)


def silent(cut: bool) -> ProviderError:
    """Return the failure of a model that said nothing, perhaps as its limit ended its thoughts."""
    if cut:
        return ProviderError(
            "The model spent its whole answer on thoughts: name a model that reasons less, or switch that off."
        )
    return ProviderError("The model answered with nothing: try again.", retryable=True)


def _mended(text: str) -> str:
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _ReasoningFilter:
    """Takes thoughts away from a text that comes in pieces."""

    def __init__(self) -> None:
        self._waiting = ""
        self._thinks = self._says = self._afresh = False
        # Thoughts that were opened in the middle of an answer: it speaks of them, or does what no template asks.
        self._opened = 0
        self._before = ""

    def read(self, text: str, *, last: bool = False) -> Iterator[str]:
        """Yield what of the text was said; thoughts without an end were no answer."""
        self._waiting += text
        while (self._says or self._begins(last)) and (end := self._unopened()):
            self._waiting, self._before, self._says, self._afresh = self._waiting[end:], "", False, True
        if not self._says and not (last and self._afresh):
            return
        ready = len(self._waiting) - (0 if last else self._held())
        piece, self._waiting = self._waiting[:ready] if self._says else "", self._waiting[ready:]
        self._before = piece[-1:] or self._before
        if self._afresh and (piece or last):
            self._afresh = False
            yield Restart(piece)
        elif piece:
            yield piece

    def _begins(self, last: bool) -> bool:
        """Whether the answer has begun, after the thoughts before it."""
        while self._thinks or _THOUGHT.match(self._waiting):
            self._thinks = True
            end = _END.search(self._waiting)
            if not end:
                # The end of thoughts may be split too.
                self._waiting = self._waiting[-_LONGEST:]
                return False
            self._thinks, self._waiting = False, self._waiting[end.end() :]
        self._waiting = self._waiting.lstrip()
        begun = self._waiting.lower()
        self._says = bool(begun) and (last or not any(tag.startswith(begun) for tag in _TAGS))
        return self._says

    def _unopened(self) -> int:
        """Return up to where what waits is thought by an end that nothing opened; 0 where none is."""
        for tag in _EITHER.finditer(self._waiting):
            before = self._waiting[tag.start() - 1] if tag.start() else self._before
            if before in _QUOTES:
                continue
            if not tag[1]:
                self._opened += 1
            elif self._opened:
                self._opened -= 1
            else:
                return tag.end()
        return 0

    def _held(self) -> int:
        """Return how many characters at the end may become a tag."""
        start = self._waiting.rfind("<", max(0, len(self._waiting) - _LONGEST))
        begun = self._waiting[start:].lower() if start >= 0 else ""
        return len(begun) if begun and any(tag.startswith(begun) and tag != begun for tag in _TAGS) else 0
