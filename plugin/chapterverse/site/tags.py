"""Finds and inserts our tags in a page of any generator: the script that loads the widget, the link to the Markdown.

A page is tokenized like in a browser, so a `</body>` in a comment, a script or an attribute is ignored.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from chapterverse.readers.html.dom import (
    END,
    HEAD_ELEMENTS,
    RAW,
    START,
    TOKEN,
    Edit,
    after_raw,
    apply_edits,
    parse_attributes,
)

#: Marks a tag that `inject` wrote and may replace.
TAG_MARK = "data-chapterverse"

_LAUNCHER = re.compile(r"(?:^|/)launcher\.js$")
#: Paths of the widget: from the plugin and `inject`, the API, and `chapterverse widget`.
_OURS = re.compile(r"chapterverse|(?:^|/)widget/launcher\.js$", re.IGNORECASE)
_IMPORTED = re.compile(r"""["']([^"'\s?#]*/launcher\.js)(?:[?#][^"']*+)?["']""")
#: Optionally after a byte order mark, also one decoded as Latin-1.
_DOCTYPE = re.compile(r"[\ufeff\xef\xbb\xbf\s]*<!doctype\s", re.IGNORECASE)
_PLAIN = re.compile(r"</body>\s*</html>\s*\Z")
_PAGE = frozenset(("html", "head", "body", "frameset"))
_MARKDOWN = "text/markdown"


@dataclass(frozen=True, slots=True)
class Launcher:
    """A tag that loads the widget.

    Attributes:
        src: address of `launcher.js` in the page, without query.
        injected: written by `inject`.
        module: loaded as a module; browsers refuse to run it otherwise.
        start: position of the tag in the page; `end` is after its end tag.
    """

    src: str
    injected: bool
    module: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PageFrame:
    """The place for a tag in a page, and the launchers that the page has.

    Attributes:
        place: position before the last `</body>`, else before the last `</html>`, else the end.
        base: `href` of `<base>`, None if the page has none.
        is_page: it is a page, not a fragment that another page includes.
    """

    launchers: tuple[Launcher, ...]
    place: int
    base: str | None
    is_page: bool


def open_frame(page: str) -> PageFrame:
    """Return the frame of a page. Never fails; takes time linear in the length of `page`."""
    if _PLAIN.search(page, max(0, len(page) - 200)) and not _may_differ(page):
        return PageFrame((), page.rindex("</body"), None, True)
    launchers: list[Launcher] = []
    ends: dict[str, int] = {}
    base, is_page, end = None, bool(_DOCTYPE.match(page)), len(page)
    for start, text_start, name, raw, after in tags(page):
        if raw is None:
            ends[name] = start
        elif name == "script":
            launchers += _launcher(page, start, text_start, raw, after)
        elif name == "base" and base is None:
            base = parse_attributes(raw).get("href")
        elif not name:
            # A tag inserted after it would be swallowed.
            end = start
        is_page = is_page or name in _PAGE
    return PageFrame(tuple(launchers), min(ends.get("body", ends.get("html", end)), end), base, is_page)


def _may_differ(page: str) -> bool:
    """Whether a page with a usual ending must be tokenized anyway; most need not, which saves most of the time."""
    return (
        "launcher.js" in page
        or "<base" in page.lower()
        or page.rfind("<!--") > page.rfind("-->")
        or page.rfind("<script") > page.rfind("</script")
    )


def put(page: str, frame: PageFrame, src: str | None) -> str:
    """Return the page with the tag for `src` instead of the tags written by `inject`; None only removes them."""
    edits = [(tag.start, tag.end, "") for tag in frame.launchers if tag.injected]
    if src is not None:
        if len(edits) == 1 and page[edits[0][0] : edits[0][1]] == _tag_for(src):
            return page
        edits.append((frame.place, frame.place, _tag_for(src)))
    return apply_edits(page, edits)


def plain_tag(src: str) -> str:
    """Return the tag for a site's configuration or template."""
    return f'<script type="module" src="{html.escape(src)}"></script>'


def _tag_for(src: str) -> str:
    """Return the tag that `inject` writes."""
    return f'<script type="module" src="{html.escape(src)}" {TAG_MARK}></script>'


def _launcher(page: str, start: int, text_start: int, raw: str, after: int) -> Iterator[Launcher]:
    """Yield the launcher that a script element loads by its address or by an import in its text."""
    attributes = parse_attributes(raw)
    module = attributes.get("type", "").strip().lower() == "module"
    src = attributes.get("src", "").strip()
    src = re.split("[?#]", src, maxsplit=1)[0]
    if src:
        if _LAUNCHER.search(src) and (_OURS.search(src) or TAG_MARK in attributes):
            yield Launcher(src, TAG_MARK in attributes, module, start, after)
    elif not _is_data(attributes.get("type", "")):
        imported = (address[1] for address in _IMPORTED.finditer(page, text_start, after))
        yield from (Launcher(a, False, True, start, after) for a in islice(filter(_OURS.search, imported), 1))


def _is_data(kind: str) -> bool:
    """Whether a script element contains data that browsers don't run."""
    return bool(kind) and not re.fullmatch(r"\s*(?:module|(?:text|application)/(?:java|ecma)script)\s*", kind)


def tags(page: str) -> Iterator[tuple[int, int, str, str | None, int]]:
    """Yield start, end, name and attributes of each tag, and the end of its element if that contains raw text.

    Attributes are None for an end tag. An unclosed comment, script or tag comes last and has no name.
    """
    position = page.find("<")
    while position >= 0 and (token := TOKEN.match(page, position)):
        start, position = position, token.end()
        closed = ("-->", "--!>") if token[0].startswith("<!--") else ">"
        if position == len(page) and (not page.endswith(closed) or token.end(2) == position):
            yield start, position, "", "", position
        elif token.lastindex == START:
            name, text_start = token[1].lower(), position
            after = after_raw(page, name, text_start) if name in RAW else text_start
            position = after or len(page)
            yield start, text_start, name if after else "", token[2], position
        elif token.lastindex == END:
            yield start, position, token[3].lower(), None, position
        position = page.find("<", position)


def link_for(href: str) -> str:
    """Return the link as we write it."""
    return f'<link rel="alternate" type="{_MARKDOWN}" href="{html.escape(href)}" {TAG_MARK}>'


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
            if "alternate" in rel and kind == _MARKDOWN:
                if TAG_MARK not in attributes:
                    return None, []
                ours.append((start, end))
        elif name not in HEAD_ELEMENTS:
            return (start if name else None), ours
    return None, []
