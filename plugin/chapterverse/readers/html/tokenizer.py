"""HTML as a stream of tags and text, cut as browsers cut it.

Python's own `html.parser` takes quadratic time on hostile input (38 s for 60 kB of "<a " on 3.11.7) and changed how it
reads comments and scripts between patch releases, which would change chunk ids between machines. One pattern that
never goes back is linear and the same everywhere.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from chapterverse.readers.html.visible_text import unescape

#: The attributes of a start tag. Quotes delimit only right after "="; a tag that never ends swallows the rest, as the
#: HTML standard says.
ATTRIBUTES = r"""[^>=]*+(?>(?:=[=\s]*+(?>"[^"]*+"?|'[^']*+'?|)[^>=]*+)*)"""

#: One token from a "<". `lastindex` tells which: 2 start tag (1 its name, 2 its attributes), 3 end tag (its name),
#: 4 a "<" that starts nothing, None a comment, doctype or processing instruction.
TOKEN = re.compile(
    rf"""<([a-zA-Z][^\s/>]*+)({ATTRIBUTES})(?:>|\Z)
    | </([a-zA-Z][^\s/>]*+)[^>]*+(?:>|\Z)
    | <!--(?:-?>|.*?(?:--!?>|\Z))
    | <[!?/][^>]*+(?:>|\Z)
    | (<)""",
    re.DOTALL | re.VERBOSE,
)
START, END = 2, 3

#: Start and end of a part of a page, and the text in its place.
Edit: TypeAlias = tuple[int, int, str]

#: Elements whose content is no markup to us; all of it is skipped.
RAW = frozenset("script style svg iframe textarea title noembed noframes".split())

#: Elements of a page's head, and those around them.
HEAD_ELEMENTS = frozenset("html head base link meta noscript script style template title".split())

#: Elements that never have content.
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())

_ATTRIBUTE = re.compile(r"""([^\s=>"'/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++)))?""")


@functools.cache
def _end_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\s/>])[^>]*+(?:>|\Z)", re.IGNORECASE)


def start_tags(html: str) -> Iterator[tuple[str, str, int]]:
    """Yield the start tags: name in lower case, attributes, the position behind the tag."""
    position = 0
    while (token := TOKEN.search(html, position)) is not None:
        position = token.end()
        if token.lastindex == START:
            name = token.group(1).lower()
            yield name, token.group(2), position
            if name in RAW:
                position = after_raw(html, name, position) or len(html)


def after_raw(html: str, name: str, start: int) -> int | None:
    """Return the position behind the end tag of the raw element with content from `start`; None if it has none."""
    end_tag = _end_of(name).search(html, start)
    return end_tag.end() if end_tag else None


def apply_edits(page: str, edits: Iterable[Edit]) -> str:
    """Return a page with the parts between two positions each replaced by a text: at once, as a page may be long."""
    parts, at = list[str](), 0
    for start, end, text in sorted(edits):
        parts += (page[at:start], text)
        at = end
    return "".join((*parts, page[at:])) if parts else page


def parse_attributes(raw: str) -> dict[str, str]:
    """Return the attributes of a start tag, names in lower case; the first of two with one name counts."""
    attributes = _ATTRIBUTE.findall(raw)
    return {name.lower(): unescape(double or single or bare) for name, double, single, bare in reversed(attributes)}
