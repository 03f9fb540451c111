"""Removes addresses from an answer unless they stand in what the generator was sent.

A page, a question or a model's own memory can talk it into writing another one, and a link or an image under a trusted
name is what an attacker wants most. So an answer passes two sieves before anybody sees it, word by word as it is
written: `markup` takes out what makes links, images and HTML, `hosts` what names an address in any disguise. Both only
take away, so what is left still belongs to the span that it came from. Control characters go first: none is seen, and
any may part an address.
"""

from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress

from chapterverse_api.generation import Draft, Passage, without
from chapterverse_api.generation.reasoning_filter import visible
from chapterverse_api.grounding.links.hosts import Hosts, KnownAddresses
from chapterverse_api.grounding.links.markup import Markup


class Links:
    """The addresses that stand in these passages and texts, and no others."""

    def __init__(self, passages: Sequence[Passage], texts: Iterable[str] = ()) -> None:
        passed = (t for p in passages for t in (*p.path, p.text, p.section, p.url or ""))
        self._known = KnownAddresses(dict.fromkeys((*passed, *texts)))

    def text(self, text: str) -> str:
        """Return a text without foreign addresses."""
        return "".join(compress(text, self._kept(text)))

    def draft(self, draft: Draft) -> Draft:
        """Return the draft without foreign addresses, also those that are spread over several spans."""
        draft = tuple(replace(span, text=visible(span.text)) for span in draft)
        return without(draft, self._kept("".join(span.text for span in draft)))

    def stream(self, steps: Steps[str, None, Draft]) -> Steps[str, None, Draft]:
        """Pass a draft on as it is written; a last word waits until it is known to be no part of an address."""
        markup, hosts = Markup(self._known), Hosts(self._known)
        while True:
            try:
                text = visible(next(steps))
            except StopIteration as end:
                rest = hosts.feed(markup.feed("", last=True).text, last=True).text
                if rest:
                    yield rest
                return self.draft(end.value)
            ready = hosts.feed(markup.feed(text).text).text
            if ready:
                yield ready

    def _kept(self, text: str) -> bytearray:
        """Return for each character of a text whether it may stand."""
        inner = Markup(self._known).feed(text, last=True)
        outer = Hosts(self._known).feed(inner.text, last=True)
        places = inner.places()
        kept = bytearray(len(text))
        for at in outer.places():
            kept[places[at]] = 1
        return kept
