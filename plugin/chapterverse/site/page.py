"""One built page as `check` sees it: its widget, its ids, its links to anchors, what its head says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from chapterverse.site.script_tag import Frame, open_frame
from chapterverse.readers.envelope import Envelope, open_envelope
from chapterverse.readers.markup import after_raw, parse_attributes, start_tags

_NAMED = re.compile(r"(?:id|name|href)\s*=", re.IGNORECASE)
_GENERATOR = re.compile(r"<meta\s+name=[\"']?generator[\"']?\s+content=[\"']?([a-z]+)", re.IGNORECASE)
_REFRESH = re.compile(r"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)


@dataclass(slots=True)
class Inspection:
    """A page.

    Attributes:
        ids: what a fragment may name: ids of elements, names of anchors.
        links: each `href` with a fragment in the page's content, once.
        generator: first word of what the page says it was made with, in lower case.
        redirect: it sends its reader elsewhere, so nobody sees it.
    """

    frame: Frame
    envelope: Envelope
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    generator: str = ""
    redirect: bool = False


def inspect(page: str) -> Inspection:
    """Return what there is to say of a page's HTML. Never fails; takes time linear in its length."""
    envelope = open_envelope(page)
    made_by = _GENERATOR.search(page, 0, 20_000)
    seen = Inspection(
        open_frame(page),
        envelope,
        generator=made_by[1].lower() if made_by else "",
        redirect=envelope.noindex and bool(_REFRESH.search(page)),
    )
    links: dict[str, None] = {}
    for name, attributes, end in _named(page):
        seen.ids.update(_ids(name, attributes))
        href = attributes.get("href", "") if name in ("a", "area") else ""
        if "#" in href and envelope.start <= end <= envelope.end:
            links[href] = None
    seen.links = list(links)
    return seen


def read_ids(page: str) -> set[str]:
    """Return the ids that a fragment may name in a page."""
    return {found for name, attributes, _ in _named(page) for found in _ids(name, attributes)}


def _named(page: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield name, attributes and end of each start tag that may have an id or a link, those in drawings too."""
    for name, raw, end in start_tags(page):
        if _NAMED.search(raw):
            yield name, parse_attributes(raw), end
        if name == "svg":
            # Links lead to the parts of a drawing, too.
            drawing = page[end : after_raw(page, "svg", end) or len(page)]
            yield from ((inner, parse_attributes(attributes), end) for inner, attributes, _ in start_tags(drawing))


def _ids(name: str, attributes: dict[str, str]) -> Iterator[str]:
    if attributes.get("id"):
        yield attributes["id"]
    if name == "a" and attributes.get("name"):
        yield attributes["name"]
