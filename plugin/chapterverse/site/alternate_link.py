"""The link in the head of a page that names the page's Markdown."""

from __future__ import annotations

import html

from chapterverse.readers.html.tokenizer import Edit, parse_attributes
from chapterverse.site.script_tag import MARK, tags

TYPE = "text/markdown"
_IN_HEAD = frozenset("html head base link meta noscript script style template title".split())


def link_for(href: str) -> str:
    """Return the link as we write it."""
    return f'<link rel="alternate" type="{TYPE}" href="{html.escape(href)}" {MARK}>'


def put_link(page: str, href: str) -> list[Edit]:
    """Return how a page gets a link to `href` at the end of its head, instead of one that we wrote before.

    A page that has such a link of its own keeps it alone. A page without a head or a body gets none.

    Args:
        href: "" only removes our link.
    """
    place, ours = _place(page)
    new = link_for(href) if href else ""
    if place is None or [page[start:end] for start, end in ours] == [new] * bool(new):
        return []
    return [(place, place, new), *((start, end, "") for start, end in ours)]


def _place(page: str) -> tuple[int | None, list[tuple[int, int]]]:
    """Return where the head ends and where our links are; None if there is no place for a link."""
    ours: list[tuple[int, int]] = []
    for start, end, name, raw, _ in tags(page):
        if raw is None:
            if name == "head":
                return start, ours
        # Parsing every link of the head would take most of the time; a reference may spell the type otherwise.
        elif name == "link" and ("markdown" in raw.lower() or "&" in raw):
            attributes = parse_attributes(raw)
            rel, kind = attributes.get("rel", "").lower().split(), attributes.get("type", "").strip().lower()
            if "alternate" in rel and kind == TYPE:
                if MARK not in attributes:
                    return None, []
                ours.append((start, end))
        elif name not in _IN_HEAD:
            return (start if name else None), ours
    return None, []
