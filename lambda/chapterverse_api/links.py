"""Addresses in an answer: only those that stand in what the generator was sent may reach the reader.

A page, a question or a model's own memory can talk it into writing another one, and a link under a trusted name is
what an attacker wants most. Such an address is left out, however its parts arrive.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chapterverse_api.generation import Draft, Passage

# With a scheme, without one ("//host.tld"), or with just the name that every browser completes.
_LINK = re.compile(
    r"""\b[a-z][a-z0-9+.-]{0,20}://[^\s<>"'`]+ | (?<![:\w])//[\w-]+(?:\.[\w-]+)+[^\s<>"'`]* | \bwww\.[^\s<>"'`]+""",
    re.IGNORECASE | re.VERBOSE,
)
# What follows an address in a sentence, or closes a Markdown link around it.
_CLOSING = ".,;:!?)]}*_"
_TAIL = re.compile(r"\S*\Z")


class Links:
    """The addresses that stand in these passages, and no others."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        texts = (t for p in passages for t in (p.text, p.section, p.url or ""))
        self._known = {match.group().rstrip(_CLOSING) for text in texts for match in _LINK.finditer(text)}

    def draft(self, draft: Draft) -> Draft:
        """Return the draft without foreign addresses, also those that are spread over several spans."""
        whole = "".join(span.text for span in draft)
        foreign = list(self._foreign(whole))
        spans, at = [], 0
        for span in draft:
            spans.append(replace(span, text=_without(whole, at, at + len(span.text), foreign)))
            at += len(span.text)
        return tuple(spans)

    def stream(self, steps: Steps[str, None, Draft]) -> Steps[str, None, Draft]:
        """Pass a draft on as it is written; a last word waits until it is known to be no part of an address."""
        waiting = ""
        while True:
            try:
                waiting += next(steps)
            except StopIteration as end:
                if waiting:
                    yield self._clean(waiting)
                return self.draft(end.value)
            tail = _TAIL.search(waiting)
            ready = waiting[: tail.start()] if tail else waiting
            waiting = waiting[len(ready) :]
            if ready:
                yield self._clean(ready)

    def _clean(self, text: str) -> str:
        return _without(text, 0, len(text), list(self._foreign(text)))

    def _foreign(self, text: str) -> Iterator[tuple[int, int]]:
        for match in _LINK.finditer(text):
            link = match.group().rstrip(_CLOSING)
            if link not in self._known:
                yield match.start(), match.start() + len(link)


def _without(text: str, start: int, end: int, gaps: Sequence[tuple[int, int]]) -> str:
    """Return `text[start:end]` without what lies in the gaps, which are in order."""
    kept = []
    for first, last in gaps:
        if first < end and last > start:
            kept.append(text[start : max(start, first)])
            start = max(start, last)
    return "".join([*kept, text[start:end]])
