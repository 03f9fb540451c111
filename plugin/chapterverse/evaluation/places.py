"""Resolves an address to a page of the site or one of its sections, however it is spelled.

Two addresses are one place when path and anchor are the same after percent-decoding, Unicode normalization (NFC) and
without query string, `index.html`, slash at the end, and `http` or `https`. An address without a host is relative to
the site's own. Both the address that the site was indexed for and the one that citations are rewritten to
(`CHAPTERVERSE_BASE_URL`) are the site's; a page on any other host is a page of another site.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urljoin, urlsplit

from chapterverse.model import Chunk


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """A page or a section.

    Attributes:
        page: path below the site's address, "" for its home page; with the host for a page of another site.
        anchor: id of the section; None for the whole page.
    """

    page: str
    anchor: str | None = None

    def holds(self, other: ExpectedPlace) -> bool:
        """Whether the other place is in this one: a page holds all its sections, a section just itself."""
        return self.page == other.page and self.anchor in (None, other.anchor)

    @property
    def whole_page(self) -> ExpectedPlace:
        return ExpectedPlace(self.page)


class SitePlaces:
    """The places of one index.

    Args:
        addresses: the site's own; relative ones are read from the first.
        chunks: all that is indexed, for `indexed` and `chapter`; without them it knows only where addresses lead.
    """

    def __init__(self, addresses: Iterable[str], chunks: Iterable[Chunk] = ()) -> None:
        self._addresses = [a.rstrip("/") + "/" for a in dict.fromkeys(addresses) if a]
        # The longer first: one may be a folder of the other.
        self._prefixes = sorted((_page(a) for a in self._addresses), key=len, reverse=True)
        self._chapters: dict[str, str] = {}
        self._places: set[ExpectedPlace] = set()
        for chunk in chunks:
            place = self.place(chunk.url)
            self._chapters.setdefault(place.page, chunk.chapter_title)
            self._places.add(place)

    def place(self, address: str) -> ExpectedPlace:
        """Return where an address leads; what is no address leads to a page of that name, which no index holds."""
        try:
            whole = urljoin(self._addresses[0], address) if self._addresses else address
            page, fragment = _page(whole), urlsplit(whole).fragment
        except ValueError:
            return ExpectedPlace(address)
        for prefix in self._prefixes:
            if page == prefix or page.startswith(f"{prefix}/"):
                page = page[len(prefix) + 1 :]
                break
        # What follows ":~:" tells a browser which words to mark.
        return ExpectedPlace(page, _plain(fragment.partition(":~:")[0]) or None)

    def indexed(self, place: ExpectedPlace) -> bool:
        """Whether a search can find the place at all."""
        return place in self._places or (place.anchor is None and place.page in self._chapters)

    def chapter(self, place: ExpectedPlace) -> str | None:
        """Return the title of a place's page; None if the index doesn't hold it."""
        return self._chapters.get(place.page)


def ranks(expected: Sequence[ExpectedPlace], found: Sequence[ExpectedPlace]) -> tuple[int | None, ...]:
    """Return at which rank each expected place was found, from 1; None for those that were not.

    A result counts for one expected place, and each place counts once: where several chunks of one section are found,
    the first has its rank and the others stand for nothing. A section is served before the page that it is on.
    """
    at: dict[int, int] = {}
    sections_first = sorted(range(len(expected)), key=lambda i: expected[i].anchor is None)
    for rank, place in enumerate(found, 1):
        served = next((i for i in sections_first if i not in at and expected[i].holds(place)), None)
        if served is not None:
            at[served] = rank
    return tuple(at.get(i) for i in range(len(expected)))


def distinct(places: Iterable[ExpectedPlace]) -> tuple[ExpectedPlace, ...]:
    return tuple(dict.fromkeys(places))


def pages(places: Iterable[ExpectedPlace]) -> tuple[ExpectedPlace, ...]:
    """Return the pages that these places are on, each once."""
    return distinct(place.whole_page for place in places)


def match(expected: Sequence[ExpectedPlace], place: ExpectedPlace) -> Literal["anchor", "page"] | None:
    """Return at which level a result is right: "anchor", "page" alone, or None."""
    if any(e.holds(place) for e in expected):
        return "anchor"
    return "page" if any(e.page == place.page for e in expected) else None


def _page(address: str) -> str:
    parts = urlsplit(address)
    path = _plain(parts.path)
    folder, slash, name = path.rpartition("/")
    if parts.scheme not in ("", "http", "https"):
        return address
    host = f"//{parts.netloc.lower()}" if parts.netloc else ""
    return host + (folder + slash if name == "index.html" else path).rstrip("/")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", unquote(text))
