"""What a model says aloud: whole characters, and none of the thoughts that some servers send before the answer."""

from __future__ import annotations

import re
from collections.abc import Generator as Steps

from chapterverse.errors import ProviderError

#: How models that reason mark their thoughts in plain text; servers that know them keep thoughts in a field apart.
_THOUGHT, _END = "<think>", "</think>"
_SURROGATE = re.compile("[\ud800-\udfff]")


def spoken(texts: Steps[str, None, bool]) -> Steps[str, None, bool]:
    """Pass a model's pieces on; blanks before the first word are left out. Returns what `texts` returns.

    A character beyond 16 bits may come in two pieces; half a one that stays alone becomes a replacement character, as
    UTF-8 can't hold it.
    """
    begun, half = _Beginning(), ""
    while True:
        try:
            text = half + next(texts)
        except StopIteration as end:
            if rest := begun.end() + _mended(half):
                yield rest
            cut: bool = end.value
            return cut
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if said := begun.read(_mended(text[: len(text) - len(half)])):
            yield said


def written(texts: Steps[str, None, bool]) -> str:
    """Return all that is said.

    Raises:
        ProviderError: it was nothing; and as `texts` does.
    """
    pieces = []
    steps = spoken(texts)
    while True:
        try:
            pieces.append(next(steps))
        except StopIteration as end:
            cut: bool = end.value
            break
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


class _Beginning:
    """Takes thoughts away; after the first word of an answer everything is the answer."""

    def __init__(self) -> None:
        self._waiting = ""
        self._thinks = self._says = False

    def read(self, text: str) -> str:
        """Return what of the text was said."""
        if self._says:
            return text
        self._waiting += text
        while self._thinks or self._waiting.lstrip().startswith(_THOUGHT):
            self._thinks = True
            _, end, rest = self._waiting.partition(_END)
            if not end:
                # The end of thoughts may be split too.
                self._waiting = self._waiting[-len(_END) :]
                return ""
            self._thinks, self._waiting = False, rest
        self._waiting = self._waiting.lstrip()
        if _THOUGHT.startswith(self._waiting):
            return ""
        self._says = True
        return self.end()

    def end(self) -> str:
        """Return what still waits; thoughts without an end were no answer."""
        rest, self._waiting = "" if self._thinks else self._waiting, ""
        return rest
