"""Maps addresses to the files of a built site and back, and checks links to its pages and anchors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin, urlsplit

from chapterverse.readers.urls import clean_url, page_address, page_paths

#: Address of a site that states none; reserved, so nothing can be there (RFC 2606).
NOWHERE = "https://site.invalid/"

_SOURCES = (".md", ".mdx", ".markdown", ".rst")


@dataclass(slots=True)
class Places:
    """The pages of a site by address.

    Attributes:
        base: address of the site, with a slash at its end.
        listed: addresses in the sitemap.
        is_base_stated: see `urls.page_address`.
        urls: address of each page placed so far.
    """

    base: str
    listed: frozenset[str] = frozenset()
    is_base_stated: bool = False
    urls: dict[str, str] = field(default_factory=dict)
    _files: dict[str, str] = field(default_factory=dict)

    def place(self, path: str, canonical: str | None) -> str:
        """Record a page and return its address."""
        stated = clean_url(canonical, self.base) if canonical else None
        url = page_address(path, self.base, stated, self.listed, is_stated=self.is_base_stated)
        self.urls[path] = url
        for way in page_paths(path):
            self._files.setdefault(self.base + way, path)
        self._files[url] = path
        return url

    def file(self, url: str) -> str | None:
        return self._files.get(url)

    def relative(self, url: str) -> str:
        return url.removeprefix(self.base)


@dataclass(slots=True)
class InternalLink:
    """Links to one place: the first page with such a link, and the number of further pages.

    Attributes:
        rooted: none of them is relative to its page.
        certain: one of them means a file of the site for certain, if a path from the root does.
    """

    source: str
    href: str
    rooted: bool
    certain: bool
    more: int = 0

    @property
    def origin(self) -> str:
        return f"{self.source} and {self.more} more" if self.more else self.source


@dataclass(slots=True)
class InternalLinks:
    """Links to other files by address and fragment, "" without one. Links within a page are checked at once.

    A file that a page shows, such as an image, has None for a fragment.
    """

    places: Places
    by_target: dict[tuple[str, str | None], InternalLink] = field(default_factory=dict)

    def add(self, path: str, base: str, hrefs: Mapping[str, bool], ids: set[str]) -> Iterator[str]:
        """Record the links of one page and yield those to missing ids of the page itself.

        Args:
            base: the address that its links are relative to.
            hrefs: whether all links with the address name a `target`, by address.
        """
        page_url = self.places.urls[path]
        for href, has_target in hrefs.items():
            before, _, fragment = href.strip().partition("#")
            fragment = fragment.partition(":~:")[0]
            # Others are read by scripts.
            if fragment.startswith(("/", "!", "?")):
                fragment = ""
            url = clean_url(urljoin(base, before)) if before or base != page_url else page_url
            if url == page_url:
                if fragment and not has(ids, fragment):
                    yield href
            elif url:
                self._record(url, fragment, path, href, has_target)

    def add_media(self, path: str, base: str, sources: Iterable[str]) -> None:
        """Record the files that one page shows."""
        for src in sources:
            if url := clean_url(urljoin(base, src)):
                self._record(url, None, path, src)

    def resolve(self, find_file: Callable[[str], str]) -> Iterator[tuple[str, str, str | None, InternalLink]]:
        """Yield address, file, fragment and link of each place of the site, the file "" if the site lacks it.

        Args:
            find_file: returns the file at an address, "" without one.
        """
        rooted = self._owns_root(find_file)
        for (url, fragment), link in self.by_target.items():
            if page := self.places.file(url):
                yield url, page, fragment, link
            elif link.certain and (rooted or not link.rooted):
                yield url, find_file(url), fragment, link

    def _record(self, url: str, fragment: str | None, path: str, href: str, has_target: bool = False) -> None:
        if not url.startswith(self.places.base):
            return
        # Docusaurus and VitePress check no path from the root that names a `target`: there it leads to another site.
        # Only a source that a generator didn't find stays in a link under its own name.
        has_scheme = ":" in href.partition("?")[0].partition("#")[0]
        rooted = has_scheme or (href.lstrip().startswith("/") and not url.endswith(_SOURCES))
        certain = not (has_scheme or (rooted and has_target))
        link = self.by_target.setdefault((url, fragment), InternalLink(path, href, rooted, certain, -1))
        link.more += 1
        # An error page names by the root what other pages name by where they are.
        link.rooted = link.rooted and rooted
        if certain and not link.certain:
            link.source, link.href, link.certain = path, href, True

    def _owns_root(self, find_file: Callable[[str], str]) -> bool:
        """Whether a path from the root of the host means a file of the site, below whose address it leads.

        Another site may share a host. So most of such paths must lead to files of this one, as where a generator writes
        all links so, unless this one has a folder of its own.
        """
        if urlsplit(self.places.base).path != "/":
            return True
        rooted = {url for (url, _), link in self.by_target.items() if link.rooted and link.certain}
        return 2 * sum(bool(self.places.file(url) or find_file(url)) for url in rooted) > len(rooted)


def has(ids: set[str], fragment: str) -> bool:
    """Whether a page with these ids has the fragment's anchor, raw or percent-encoded."""
    return fragment in ids or unquote(fragment) in ids or fragment.lower() == "top"


def read_redirects(text: str) -> re.Pattern[str]:
    """Return the pattern of the paths that a host leads elsewhere, of the file `_redirects` for Netlify or Cloudflare.

    What it says of all paths at once is left out: it shows an error page, or an application in place of pages.
    """
    paths = [line.split()[0] for line in text.splitlines() if line.startswith("/")]
    rules = [re.sub(r":\w+", "[^/]+", re.escape(path.removesuffix("*").rstrip("/"))) for path in paths]
    ends = ["/.*" if path.endswith("*") else "/?" for path in paths]
    return re.compile("|".join(rule + end for rule, end in zip(rules, ends, strict=True) if rule) or r"(?!)")
