"""Resolves the spellings of an address to a page of the site or one of its sections.

Two addresses are one place if path and anchor are equal after percent-decoding and Unicode normalization (NFC),
ignoring query string, `index.html`, a slash at the end, and `http` or `https`. An address without a host is relative to
the site's own. The site's addresses are the one it was indexed for and the one that citations are rewritten to
(`CHAPTERVERSE_BASE_URL`); a page on any other host belongs to another site. A FAQ entry that names no page is the place
FILE#QUESTION, such as `knowledge/faq/orders.md#Who ships it?`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urljoin, urlsplit

from chapterverse.model import Chunk


def place_without_page(file_path: str, question: str | None) -> str:
    """Return the address by which an evaluation names an entry that names no page: FILE#QUESTION."""
    return f"{file_path}#{question or ''}"


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
        """Whether it contains the other place: a page contains its sections, a section only itself."""
        return self.page == other.page and self.anchor in (None, other.anchor)

    @property
    def whole_page(self) -> ExpectedPlace:
        return ExpectedPlace(self.page)


class SitePlaces:
    """The places of one index.

    Args:
        addresses: the site's own; relative addresses are resolved against the first.
        chunks: all indexed chunks, for `indexed` and `chapter`; not needed for `place`.
    """

    def __init__(self, addresses: Iterable[str], chunks: Iterable[Chunk] = ()) -> None:
        self._addresses = [a.rstrip("/") + "/" for a in dict.fromkeys(addresses) if a]
        # Longest first, because one may be a prefix of the other.
        self._prefixes = sorted((_page(a) for a in self._addresses), key=len, reverse=True)
        self._chapters: dict[str, str] = {}
        self._places: set[ExpectedPlace] = set()
        for chunk in chunks:
            place = self.place(chunk.url or place_without_page(chunk.source_file_path, chunk.section_heading))
            self._chapters.setdefault(place.page, chunk.chapter_title)
            self._places.add(place)

    def place(self, address: str) -> ExpectedPlace:
        """Return the place of an address; an invalid address becomes a page that no index holds."""
        try:
            url = urljoin(self._addresses[0], address) if self._addresses else address
            page, fragment = _page(url), urlsplit(url).fragment
        except ValueError:
            return ExpectedPlace(address)
        for prefix in self._prefixes:
            if page == prefix or page.startswith(f"{prefix}/"):
                page = page[len(prefix) + 1 :]
                break
        # A text fragment follows ":~:".
        return ExpectedPlace(page, _plain(fragment.partition(":~:")[0]) or None)

    def holds(self, place: ExpectedPlace) -> bool:
        """Whether the index holds the place."""
        return place in self._places or (place.anchor is None and place.page in self._chapters)

    def chapter(self, place: ExpectedPlace) -> str | None:
        """Return the title of a place's page; None if the index doesn't hold it."""
        return self._chapters.get(place.page)


def ranks(targets: Sequence[ExpectedPlace], results: Sequence[ExpectedPlace]) -> tuple[int | None, ...]:
    """Return the rank of each expected place from 1, None for places not found.

    A result counts for one expected place, a section before its page. Of several chunks of one section only the first
    counts.
    """
    rank_of: dict[int, int] = {}
    sections_first = sorted(range(len(targets)), key=lambda i: targets[i].anchor is None)
    for rank, place in enumerate(results, 1):
        matched = next((i for i in sections_first if i not in rank_of and targets[i].holds(place)), None)
        if matched is not None:
            rank_of[matched] = rank
    return tuple(rank_of.get(i) for i in range(len(targets)))


def distinct(places: Iterable[ExpectedPlace]) -> tuple[ExpectedPlace, ...]:
    return tuple(dict.fromkeys(places))


def pages(places: Iterable[ExpectedPlace]) -> tuple[ExpectedPlace, ...]:
    """Return the distinct pages of these places."""
    return distinct(place.whole_page for place in places)


def match_place(targets: Sequence[ExpectedPlace], place: ExpectedPlace) -> Literal["anchor", "page"] | None:
    """Return "anchor" if a result is in an expected place, "page" if it is only on its page, else None."""
    if any(e.holds(place) for e in targets):
        return "anchor"
    return "page" if any(e.page == place.page for e in targets) else None


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
