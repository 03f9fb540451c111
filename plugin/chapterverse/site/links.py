"""Maps addresses to the files of a built site and back, and checks links to its pages and anchors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin

from chapterverse.readers.addresses import clean_url, page_paths

#: Address of a site that states none; reserved, so nothing can be there (RFC 2606).
NOWHERE = "https://site.invalid/"

_PAGE_ENDINGS = frozenset(("html", "htm", "md", "mdx", "markdown", "rst"))


@dataclass(slots=True)
class Places:
    """The pages of a site by address.

    Attributes:
        base: address of the site, with a slash at its end.
        listed: addresses in the sitemap.
        urls: address of each page placed so far.
    """

    base: str
    listed: frozenset[str] = frozenset()
    urls: dict[str, str] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)

    def place(self, path: str, canonical: str | None) -> str:
        """Record a page and return its address: canonical link, else sitemap entry, else derived from the path."""
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
    """Links to another page or an anchor of it: the first page with such a link, and the number of further pages."""

    source: str
    href: str
    more: int = 0

    @property
    def origin(self) -> str:
        return f"{self.source} and {self.more} more" if self.more else self.source


@dataclass(slots=True)
class InternalLinks:
    """Links to other pages by address and fragment, "" without one. Links within a page are checked at once."""

    places: Places
    by_target: dict[tuple[str, str], InternalLink] = field(default_factory=dict)

    def add(self, path: str, base: str, hrefs: Iterable[str], ids: set[str]) -> Iterator[str]:
        """Record the links of one page and yield those to missing ids of the page itself.

        Args:
            base: the address that its links are relative to.
        """
        own = self.places.urls[path]
        for href in hrefs:
            before, _, fragment = href.strip().partition("#")
            fragment = fragment.partition(":~:")[0]
            if not _is_anchor(fragment):
                fragment = ""
            url = clean_url(urljoin(base, before)) if before or base != own else own
            if url == own:
                if fragment and not has(ids, fragment):
                    yield href
            elif url and url.startswith(self.places.base):
                link = self.by_target.setdefault((url, fragment), InternalLink(path, href, -1))
                link.more += 1

    def by_file(self) -> dict[str, dict[str, InternalLink]]:
        """Return the links by file and fragment."""
        links: dict[str, dict[str, InternalLink]] = {}
        for (url, fragment), link in self.by_target.items():
            if (file := self.places.file(url)) is not None and fragment:
                links.setdefault(file, {})[fragment] = link
        return links

    def lost(self) -> Iterator[tuple[str, str, InternalLink]]:
        """Yield address, fragment and link where no page of the site is known at the address."""
        for (url, fragment), link in self.by_target.items():
            if self.places.file(url) is None and _is_within_site(link.href):
                yield url, fragment, link


def has(ids: set[str], fragment: str) -> bool:
    """Whether a page with these ids has the fragment's anchor, raw or percent-encoded."""
    return fragment in ids or unquote(fragment) in ids or fragment.lower() == "top"


def _is_anchor(fragment: str) -> bool:
    """Whether a fragment names an anchor. An empty one is the page itself, others are read by scripts."""
    return bool(fragment) and not fragment.startswith(("/", "!", "?"))


def _is_within_site(href: str) -> bool:
    """Whether a link's target is a page of the same site and not only of the same host.

    A source that a generator didn't find stays in the link, as "setup.md".
    """
    path = href.strip().partition("#")[0].partition("?")[0]
    ending = path.rpartition("/")[2].rpartition(".")[1:]
    return not path.startswith("/") and ":" not in path and (not ending[0] or ending[1].lower() in _PAGE_ENDINGS)
