"""Removes addresses from an answer unless they stand in what the generator was sent.

A page, a question or a model's own memory can talk it into writing another one, and a link or an image under a trusted
name is what an attacker wants most. So each sentence of an answer passes two sieves before anybody sees it: `markup`
takes out what makes links, images and HTML, `hosts` what names an address in any disguise. Both only take away, and
both remember how the sentence before ended. Control characters go first: none is seen, and any may part an address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chapterverse_api.generation import Passage
from chapterverse_api.generation.reasoning import visible
from chapterverse_api.grounding.links.hosts import Hosts, KnownAddresses
from chapterverse_api.grounding.links.markup import Markup


class Links:
    """The addresses that stand in these passages and texts, and no others; takes all others out of one answer."""

    def __init__(self, passages: Sequence[Passage], texts: Iterable[str] = ()) -> None:
        passed = (t for p in passages for t in (*p.path, p.text, p.section, p.url or ""))
        known = KnownAddresses(dict.fromkeys((*passed, *texts)))
        self._markup, self._hosts = Markup(known), Hosts(known)

    def without_foreign(self, sentence: str) -> str:
        """Return the next sentence of the answer without foreign addresses."""
        return self._hosts.sift(self._markup.sift(visible(sentence)))
