"""Filters the sentences of an answer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chapterverse.text.markdown import escape_markdown
from chapterverse_api.check.links.hosts import HostFilter
from chapterverse_api.check.links.known_text import KnownText, SiteText
from chapterverse_api.check.links.markup import MarkupFilter
from chapterverse_api.draft.draft import strip_controls
from chapterverse_api.draft.requests import Passage


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
