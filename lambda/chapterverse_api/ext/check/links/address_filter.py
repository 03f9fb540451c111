"""Filters the sentences of an answer, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chapterverse.text.markdown import escape_markdown
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.links.hosts import HostFilter
from chapterverse_api.ext.check.links.known_text import KnownText, SiteText
from chapterverse_api.ext.check.links.markup import MarkupFilter

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class AddressFilter:
    """Removes the addresses from one answer that are neither in these passages and texts nor on the site."""

    def __init__(self, passages: Sequence[Passage], texts: Iterable[str] = (), site: SiteText | None = None) -> None:
        headings = [heading for p in passages for heading in (*p.path, *(below.heading for below in p.subsections))]
        # A quote shows them escaped: `Schema(\*, only)` would be a disguised host.
        escaped = (escape_markdown(heading, in_link=in_link) for heading in headings for in_link in (False, True))
        urls = (url or "" for p in passages for url in (p.url, *(below.url for below in p.subsections)))
        bodies = (text for p in passages for text in (p.text, p.section))
        known = KnownText((*headings, *escaped, *urls, *bodies, *texts), site or SiteText())
        self._known, self._markup, self._hosts = known, MarkupFilter(known), HostFilter(known)

    def without_foreign(self, sentence: str) -> str:
        """Return the next sentence of the answer without foreign addresses."""
        self._known.sentence = sentence
        return self._hosts.filter(self._markup.filter(strip_controls(sentence)))


def without_foreign(text: str, texts: Iterable[str]) -> str:
    """Return a text without the addresses that no other text holds."""
    return AddressFilter((), texts).without_foreign(text)


def strip_controls(text: str) -> str:
    """Return a text without control characters other than line feeds and tabs."""
    return _CONTROLS.sub("", text)
