"""Inspects one built page, its widget, ids, links and head, and checks the links between all pages of a site."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from urllib.parse import unquote, urljoin, urlsplit

from chapterverse.readers.html.dom import after_raw, parse_attributes, start_tags
from chapterverse.readers.html.metadata import PageMetadata, read_metadata
from chapterverse.readers.html.visible_text import unescape
from chapterverse.readers.sections.html_page import read_fragment
from chapterverse.readers.urls import clean_url, page_address, page_paths
from chapterverse.site.tags import PageFrame, open_frame

#: Address of a site that states none; reserved, so nothing can be there (RFC 2606).
NOWHERE = "https://site.invalid/"

_SOURCES = (".md", ".mdx", ".markdown", ".rst")
#: Text between tags, and what is none of it.
_TEXT = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|noscript)\b.*?(?:</\1|\Z)|<[^<>]*>?|([^<]+)", re.DOTALL | re.IGNORECASE
)
#: Characters of text that no page without content has.
_MUCH_TEXT = 1000
_NAMED = re.compile(r"(?:id|name|href|src)\s*=", re.IGNORECASE)
#: Elements that show a file.
_MEDIA = frozenset("img source video audio track".split())
_GENERATOR = re.compile(r"<meta\s+name=[\"']?generator[\"']?\s+content=[\"']?([a-z]+)", re.IGNORECASE)
#: Schemes that lead to no page; an address of http may be the site's own.
_FOREIGN = re.compile(r"\s*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
#: What Sphinx leaves of a reference whose target it didn't find; found, it stands in a link or loses the class.
_UNRESOLVED = re.compile(
    r"""(<a\b[^<>]*>)?<(?:span|code)\ class="xref\ (?:std\ std-(?:ref|doc|term|numref|keyword|option)|download|any|myst)
    \b[^"<>]*">(?:<span[^<>]*>)?([^<]{0,200})""",
    re.VERBOSE,
)
_REFRESH = re.compile(r"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)


@dataclass(slots=True)
class Inspection:
    """The facts of a page.

    Attributes:
        ids: possible targets of a fragment: ids of elements, names of anchors.
        links: each distinct `href` that may lead to a page of the site, and whether all its links name a `target`.
            Fragments alone are only taken from the page's content, because scripts of a theme use them too.
        media: each distinct address of an image, a video or a sound that may be a file of the site.
        unresolved: texts of references without a link, whose target Sphinx didn't find.
        generator: first word of the generator's meta tag, in lower case.
        redirect: the page redirects its readers.
    """

    frame: PageFrame
    metadata: PageMetadata
    ids: set[str] = field(default_factory=set)
    links: dict[str, bool] = field(default_factory=dict)
    media: dict[str, None] = field(default_factory=dict)
    unresolved: tuple[str, ...] = ()
    generator: str = ""
    redirect: bool = False


def inspect(page: str) -> Inspection:
    """Inspect a page's HTML. Never fails; takes time linear in its length."""
    metadata = read_metadata(page)
    made_by = _GENERATOR.search(page, 0, 20_000)
    inspection = Inspection(
        open_frame(page),
        metadata,
        generator=made_by[1].lower() if made_by else "",
        redirect=metadata.noindex and bool(_REFRESH.search(page)),
    )
    for name, attributes, end in _named_tags(page):
        inspection.ids.update(_ids(name, attributes))
        if name in ("a", "area"):
            href = attributes.get("href", "")
            is_page_link = not href.lstrip().startswith("#") or metadata.content_start <= end <= metadata.content_end
            if href and is_page_link and not _FOREIGN.match(href):
                inspection.links[href] = inspection.links.get(href, True) and "target" in attributes
        elif name in _MEDIA and (src := attributes.get("src", "")) and not _FOREIGN.match(src):
            inspection.media[src] = None
    references = _UNRESOLVED.finditer(page, metadata.content_start, metadata.content_end)
    inspection.unresolved = tuple(dict.fromkeys(" ".join(unescape(m[2]).split()) for m in references if not m[1]))
    return inspection


def has_text(page: str, inspection: Inspection) -> bool:
    """Return whether the index would find any text in a page."""
    content = page[inspection.metadata.content_start : inspection.metadata.content_end]
    # Only a page that looks empty is read as the index reads it.
    lengths = accumulate(len(found[2].strip()) for found in _TEXT.finditer(content) if found[2])
    return any(length > _MUCH_TEXT for length in lengths) or any(
        section.heading or section.blocks for section in read_fragment(content, "")
    )


def read_ids(page: str) -> set[str]:
    """Return the ids of a page that a fragment may name."""
    return {element_id for name, attributes, _ in _named_tags(page) for element_id in _ids(name, attributes)}


def _named_tags(page: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield name, attributes and end of each start tag that may have an id or a link."""
    for name, raw, end in start_tags(page):
        if _NAMED.search(raw):
            yield name, parse_attributes(raw), end
        if name == "svg":
            # Parts of an SVG drawing can be link targets.
            drawing = page[end : after_raw(page, "svg", end) or len(page)]
            yield from ((inner, parse_attributes(attributes), end) for inner, attributes, _ in start_tags(drawing))


def _ids(name: str, attributes: dict[str, str]) -> Iterator[str]:
    if attributes.get("id"):
        yield attributes["id"]
    if name == "a" and attributes.get("name"):
        yield attributes["name"]


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
