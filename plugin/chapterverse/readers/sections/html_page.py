"""Reads rendered HTML, the source of truth, into sections with the anchors of the page."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from chapterverse.model import Section
from chapterverse.readers.html.dom import Node
from chapterverse.readers.html.metadata import read_metadata, read_structured_data
from chapterverse.readers.html.parser import parse_html
from chapterverse.readers.html.visible_text import unescape
from chapterverse.readers.sections.block_reader import BlockReader
from chapterverse.readers.sections.labels import find_footnotes, move_tabs
from chapterverse.readers.sections.outline import Heading, build_sections

#: Characters of a page's name at the end of the way to it.
_MAX_CRUMB_CHARS = 100
_ID = re.compile(r"""\s(?:id|name)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A whole built page.

    Attributes:
        title: by the mark of its build, else its first-level heading, else its `<title>`; "" if it has neither.
        language: of the mark, else of `<html lang>`, else of its text.
        canonical: its own address as it states it, None if it doesn't.
        noindex: it asks not to be indexed, or only redirects.
        fragment: the HTML of the content, which was read.
        created_at: the date of the page, ISO 8601 UTC; None if it states none.
        structured_data: its JSON-LD (see `html.metadata`).
    """

    sections: tuple[Section, ...]
    title: str
    language: str
    canonical: str | None
    noindex: bool
    fragment: str
    tags: tuple[str, ...] = ()
    created_at: str | None = None
    structured_data: tuple[dict[str, Any], ...] = ()


def read_fragment(html: str, title: str, verbatim: Sequence[str] = ()) -> tuple[Section, ...]:
    """Return the sections of an article's inner HTML (MkDocs: `page.content`) under the page's `title`.

    Takes time linear in the length of `html`.

    Args:
        verbatim: paragraphs as their Markdown source has them (see `markdown.verbatim`).

    Raises:
        PageTooLarge: see `parse_html`.
    """
    reader = _read(parse_html(html), html, verbatim)
    return build_sections(reader.items, title, reader.notes)


def read_with_links(html: str, title: str, base: str) -> tuple[Section, ...]:
    """Return the sections of an article's inner HTML as Markdown for other programs (see `linked_inline`).

    Takes time linear in the length of `html`.

    Args:
        title: of the page; "" takes its first-level heading.
        base: the absolute address that relative links start from.

    Raises:
        PageTooLarge: see `parse_html`.
    """
    reader = _read(_without_ways(parse_html(html)), html, base=base)
    return build_sections(reader.items, title, reader.notes)


def read_document(html: str, part: tuple[int, int] | None = None) -> HtmlPage:
    """Return the sections and facts of a built page, read from its content (see `html.metadata`).

    Args:
        part: of the content to read, in characters from its beginning; None reads all of it.

    Raises:
        PageTooLarge: see `parse_html`.
    """
    metadata = read_metadata(html)
    if part:
        metadata.narrow(*part)
    fragment = metadata.content(html)
    reader = _read(_without_ways(parse_html(fragment)), fragment)
    first = (item.text for item in reader.items if isinstance(item, Heading) and item.level == 1 and not item.excluded)
    title = metadata.mark.title if metadata.mark else next(filter(None, first), metadata.title)
    return HtmlPage(
        sections=build_sections(reader.items, title, reader.notes),
        title=title,
        language=metadata.language or "en",
        canonical=metadata.canonical,
        noindex=metadata.noindex,
        fragment=fragment,
        tags=metadata.tags,
        created_at=metadata.created_at,
        structured_data=read_structured_data(html),
    )


def _without_ways(tree: Node) -> Node:
    """Return a page's tree without the way to it above its first heading and the links to the pages before and behind
    it below its content, where no `nav` says what these are.
    """
    level = tree
    while headed := next(filter(lambda child: child.headed, level.elements()), None):
        children = level.elements()
        at = children.index(headed)
        # A page without a heading begins with its text, and one of links alone holds no more.
        ways = set(filter(_is_breadcrumb, children[:at]))
        below = children[at + 1 :]
        if not any(child.headed for child in below) and any(inner.name in ("p", "pre") for inner in headed.walk()):
            ways.update(filter(_is_pager, below))
        if ways:
            level.children = [child for child in level.children if isinstance(child, str) or child not in ways]
        level = headed
    return tree


def _is_pager(node: Node) -> bool:
    """Return whether an element holds one or two links to other pages and nothing else."""
    links = [inner for inner in node.walk() if inner.name == "a" and inner.get("href") and not inner.target_id]
    is_short = node.name == "div" and 0 < len(links) <= 2
    return is_short and "".join(node.text().split()) == "".join("".join(link.text() for link in links).split())


def _is_breadcrumb(node: Node) -> bool:
    """Return whether an element has a box with a link to each page above, each below the last, and one for itself.

    Paragraphs and the items of a list are text: a list of what to install may have a link in its first item alone.
    """
    boxes = [child for child in node.elements() if child.text().strip()] if node.block else []
    *above, here = [[inner for inner in (box, *box.walk()) if inner.name == "a"] for box in boxes] or [[]]
    if not above or here or any(box.name != "div" for box in boxes) or any(len(links) != 1 for links in above):
        return False
    # What a link is only a part of, or is long, is text.
    if any(links[0].text().strip() != box.text().strip() for links, box in zip(above, boxes, strict=False)):
        return False
    if len(boxes[-1].text().strip()) > _MAX_CRUMB_CHARS:
        return False
    addresses = [links[0].get("href") or "" for links in above]
    return all(below.startswith(upper) for upper, below in pairwise(addresses))


def _read(tree: Node, html: str, verbatim: Sequence[str] = (), base: str = "") -> BlockReader:
    footnotes = find_footnotes(tree) if "footnote" in html else {}
    return BlockReader(tree, footnotes, _anchor_test(html), move_tabs(tree), verbatim, base)


def _anchor_test(html: str) -> Callable[[str], bool]:
    """Return a test for ids of the page; the first call collects them, and only a heading without an id makes one."""

    @functools.cache
    def ids() -> frozenset[str]:
        return frozenset(unescape(a or b or c) for a, b, c in _ID.findall(html))

    return lambda anchor: anchor in ids()
