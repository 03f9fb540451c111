"""Inspects one built page: its widget, ids, links to anchors and head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from chapterverse.readers.html.dom import after_raw, parse_attributes, start_tags
from chapterverse.readers.html.metadata import PageMetadata, read_metadata
from chapterverse.readers.html.visible_text import unescape
from chapterverse.readers.sections.html_page import read_fragment
from chapterverse.site.tags import PageFrame, open_frame

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
