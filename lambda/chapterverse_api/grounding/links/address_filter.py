"""Filters the sentences of an answer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.reasoning import strip_controls
from chapterverse_api.grounding.links.hosts import Hosts, KnownAddresses
from chapterverse_api.grounding.links.markup import Markup


class AddressFilter:
    """Removes the addresses from one answer that are not in these passages and texts."""

    def __init__(self, passages: Sequence[Passage], texts: Iterable[str] = ()) -> None:
        passed = (
            text
            for p in passages
            for text in (*p.path, p.text, p.section, p.url or "", *chain.from_iterable(p.subsections))
        )
        known = KnownAddresses(dict.fromkeys((*passed, *texts)))
        self._markup, self._hosts = Markup(known), Hosts(known)

    def without_foreign(self, sentence: str) -> str:
        """Return the next sentence of the answer without foreign addresses."""
        return self._hosts.sift(self._markup.sift(strip_controls(sentence)))
