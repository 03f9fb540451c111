"""Which file of a built site an address leads to, and which address a file has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin

from chapterverse.readers.addresses import clean_url, page_paths

#: Stands for the address of a site that states none; nothing can be there (RFC 2606).
NOWHERE = "https://site.invalid/"


@dataclass(slots=True)
class Places:
    """The pages of a site by address.

    Attributes:
        base: address of the site, with a slash at its end.
        listed: addresses in the site's map.
        urls: address of each page that was placed.
    """

    base: str
    listed: frozenset[str] = frozenset()
    urls: dict[str, str] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)

    def place(self, path: str, canonical: str | None) -> str:
        """Note a page and return its address: what it states, else its entry in the site's map, else by its path."""
        ways = page_paths(path)
        stated = clean_url(canonical, self.base) if canonical else None
        url = stated or next((self.base + w for w in ways if self.base + w in self.listed), self.base + ways[0])
        self.urls[path] = url
        for way in ways:
            self._files.setdefault(self.base + way, path)
        self._files[url] = path
        return url

    def file(self, url: str) -> str | None:
        return self._files.get(url)

    def relative(self, url: str) -> str:
        return url.removeprefix(self.base)


@dataclass(slots=True)
class InternalLink:
    """Links to one anchor of another page: the first page that has one, and how many more do."""

    source: str
    href: str
    more: int = 0

    @property
    def origin(self) -> str:
        return f"{self.source} and {self.more} more" if self.more else self.source


@dataclass(slots=True)
class InternalLinks:
    """Links to anchors of the site, by address and fragment: those of a page itself are answered at once."""

    places: Places
    wanted: dict[tuple[str, str], InternalLink] = field(default_factory=dict)

    def add(self, path: str, base: str, hrefs: Iterable[str], ids: set[str]) -> Iterator[str]:
        """Take the links of one page and yield those to ids that the page itself doesn't have.

        Args:
            base: what its links are relative to.
        """
        own = self.places.urls[path]
        for href in hrefs:
            before, _, fragment = href.strip().partition("#")
            fragment = fragment.partition(":~:")[0]
            if not _names(fragment):
                continue
            url = clean_url(urljoin(base, before)) if before or base != own else own
            if url == own:
                if not has(ids, fragment):
                    yield href
            elif url and url.startswith(self.places.base):
                link = self.wanted.setdefault((url, fragment), InternalLink(path, href, -1))
                link.more += 1

    def by_file(self) -> dict[str, dict[str, InternalLink]]:
        """Return what must be in each page; under "" the links to pages that the site doesn't have."""
        found: dict[str, dict[str, InternalLink]] = {}
        for (url, fragment), link in self.wanted.items():
            file = self.places.file(url)
            if file is not None:
                found.setdefault(file, {})[fragment] = link
            elif _is_beside(link.href):
                found.setdefault("", {})[f"{url}#{fragment}"] = link
        return found


def has(ids: set[str], fragment: str) -> bool:
    """Whether a page with these ids has what the fragment of an address names, raw or percent-encoded."""
    return fragment in ids or unquote(fragment) in ids or fragment.lower() == "top"


def _names(fragment: str) -> bool:
    """Whether a fragment names an anchor: an empty one is the page, others are read by scripts."""
    return bool(fragment) and not fragment.startswith(("/", "!", "?"))


def _is_beside(href: str) -> bool:
    """Whether a link says that its target is of the same site, and not just at the same host."""
    path = href.partition("#")[0]
    return not path.startswith("/") and ":" not in path and path.endswith((".html", ".htm", "/"))
