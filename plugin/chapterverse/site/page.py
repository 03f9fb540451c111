"""Inspects one built page: its widget, ids, links to anchors and head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from chapterverse.indexing.plugin_api import READ_MARK
from chapterverse.readers.envelope import Envelope, open_envelope
from chapterverse.readers.markup import after_raw, parse_attributes, start_tags
from chapterverse.site.script_tag import Frame, open_frame

_NAMED = re.compile(r"(?:id|name|href)\s*=", re.IGNORECASE)
_GENERATOR = re.compile(r"<meta\s+name=[\"']?generator[\"']?\s+content=[\"']?([a-z]+)", re.IGNORECASE)
#: The plugin's mark at the end of what it read. A page that explains it shows the tag as text, with "&lt;".
_READ = re.compile(rf"""<div\b[^<>]*\b{READ_MARK}(?:=["']?([0-9a-f]*))?""", re.IGNORECASE)
#: Schemes that lead to no page; an address of http may be the site's own.
_FOREIGN = re.compile(r"\s*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_REFRESH = re.compile(r"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)


@dataclass(slots=True)
class Inspection:
    """The facts of a page.

    Attributes:
        ids: possible targets of a fragment: ids of elements, names of anchors.
        links: each distinct `href` in the page's content that may lead to a page of the site.
        generator: first word of the generator's meta tag, in lower case.
        redirect: the page redirects its readers.
        read: hash of what the plugin read of the page, "" if it left the page out; None without its mark.
        read_to: position of that mark.
    """

    frame: Frame
    envelope: Envelope
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    generator: str = ""
    redirect: bool = False
    read: str | None = None
    read_to: int = 0


def inspect(page: str) -> Inspection:
    """Inspect a page's HTML. Never fails; takes time linear in its length."""
    envelope = open_envelope(page)
    made_by = _GENERATOR.search(page, 0, 20_000)
    inspection = Inspection(
        open_frame(page),
        envelope,
        generator=made_by[1].lower() if made_by else "",
        redirect=envelope.noindex and bool(_REFRESH.search(page)),
    )
    # A page that repeats others, such as one for print, has several.
    if len(marks := list(_READ.finditer(page, envelope.start))) == 1:
        inspection.read, inspection.read_to = marks[0][1] or "", marks[0].start()
    links: dict[str, None] = {}
    for name, attributes, end in _named(page):
        inspection.ids.update(_ids(name, attributes))
        href = attributes.get("href", "") if name in ("a", "area") else ""
        if href and not _FOREIGN.match(href) and envelope.start <= end <= envelope.end:
            links[href] = None
    inspection.links = list(links)
    return inspection


def read_ids(page: str) -> set[str]:
    """Return the ids of a page that a fragment may name."""
    return {element_id for name, attributes, _ in _named(page) for element_id in _ids(name, attributes)}


def _named(page: str) -> Iterator[tuple[str, dict[str, str], int]]:
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
