"""A tiny tree of what an HTML fragment shows, tolerant of every kind of markup.

Elements that show nothing, or nothing of the page's own (scripts, navigation, buttons, hidden and excluded elements),
are parsed for their extent and left out. The tree is at most `MAX_DEPTH` deep, so that its readers may recurse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from chapterverse.readers.markup import END, RAW, START, STRAY, TAG, TEXT, TOKEN, VOID, after_raw, parse_attributes
from chapterverse.readers.visible import strip_invisible, unescape

#: Deeper containers lose their tags and keep what is in them; pages of real sites stay below 60.
MAX_DEPTH = 100

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
BLOCKS = HEADINGS | frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer header hgroup hr html legend li main menu nav ol p pre search section summary table tbody td tfoot th"
    " thead tr ul".split()
)
_TABLE_PARTS = frozenset("caption col colgroup tbody td tfoot th thead tr".split())
_CELL_WALLS = frozenset(("td", "th", "caption", "table"))

_FLOORS = HEADINGS | {"p", "pre"}

#: What a start tag closes: any of the first, unless one of the second stands between.
_CLOSES = {
    "li": ({"li"}, {"ul", "ol", "menu", "table", "td", "th"}),
    **dict.fromkeys(("dt", "dd"), ({"dt", "dd"}, {"dl", "table", "td", "th"})),
    **dict.fromkeys(("td", "th"), ({"td", "th"}, {"tr", "table"})),
    "tr": ({"tr"}, {"table"}),
    **dict.fromkeys(("thead", "tbody", "tfoot"), ({"thead", "tbody", "tfoot", "caption"}, {"table"})),
}
_CLOSES_P = ({"p"}, _CELL_WALLS)

_DROPPED = RAW | frozenset("audio button canvas dialog form map menu nav noscript object select template video".split())
_DROPPED_CLASSES = frozenset(
    "linenos linenodiv lineno lnt ln gutter rouge-gutter line-numbers-wrapper visually-hidden sr-only"
    " screen-reader-text md-source-file katex-html copybtn footnote-backref data-footnote-backref"
    " reversefootnote".split()
)
# Too common a word to be dropped elsewhere; VitePress writes a fence's language into such a span.
_DROPPED_SPAN = "lang"
# Most tags show at a glance that nothing of this concerns them; only the others have their attributes parsed.
_HINT = re.compile(
    rf"\b(?:hidden|exclude|ignore|display|font-size|navigation|doc-backlink|lang|{'|'.join(sorted(_DROPPED_CLASSES))})\b"
)
_NOT_PLAIN = re.compile(r"</pre>|<(?!/?(?:span|code|a)[\s>])")
_CODE_TAG = re.compile(r"<code\b([^>]*+)>", re.IGNORECASE)
# What is never seen, whoever looks; `aria-hidden` is for those who listen, and the others see it.
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:\.0*)?(?:[a-z]+|%)?\s*(?:!|;|\Z)", re.IGNORECASE
)


class Node:
    """An element: its `name`, its `children` in order, and what is asked of it again and again.

    Attributes:
        block: it is displayed as a block, or holds one.
        headed: it is a heading, or holds one.
    """

    __slots__ = ("_attributes", "_classes", "_raw", "block", "children", "headed", "name")

    def __init__(self, name: str, raw: str = "") -> None:
        self.name = name
        self.children: list[Child] = []
        self.block = name in BLOCKS
        self.headed = name in HEADINGS
        self._raw = raw
        self._attributes: dict[str, str] | None = None
        self._classes: list[str] | None = None

    def get(self, attribute: str) -> str | None:
        """Return the value of an attribute, "" where it has none, None where it is absent."""
        if not self._raw:
            return None
        if self._attributes is None:
            self._attributes = parse_attributes(self._raw)
        return self._attributes.get(attribute)

    @property
    def classes(self) -> list[str]:
        if self._classes is None:
            self._classes = (self.get("class") or "").split()
        return self._classes

    def elements(self) -> list[Node]:
        """Return the child elements without the text between them."""
        return [c for c in self.children if isinstance(c, Node)]

    def walk(self) -> Iterator[Node]:
        """Yield the elements inside this one in document order."""
        rest = self.elements()[::-1]
        while rest:
            node = rest.pop()
            yield node
            rest.extend(node.elements()[::-1])

    def text(self) -> str:
        """Return all text inside, whitespace as it stands, a newline for `<br>`."""
        out: list[str] = []
        rest: list[Child] = [self]
        while rest:
            child = rest.pop()
            if isinstance(child, str):
                out.append(child)
            elif child.name == "br":
                out.append("\n")
            else:
                rest.extend(reversed(child.children))
        return "".join(out)


Child: TypeAlias = "Node | str"


def parse(html: str) -> Node:
    """Return the tree of a fragment under a nameless root. Never fails, takes time linear in the length."""
    if "\r" in html:
        html = html.replace("\r\n", "\n").replace("\r", "\n")
    builder = _Builder()
    position, end = 0, len(html)
    while position < end:
        token = TOKEN.match(html, position)
        assert token is not None  # the pattern matches at every position
        position = token.end()
        kind = token.lastindex
        if kind in (TEXT, STRAY):
            builder.text(token.group())
        elif kind == START:
            name, raw = token.group(2).lower(), token.group(3)
            if name in RAW:
                position = builder.skip(html, name, position)
            elif name == "pre":
                position = builder.preformatted(html, raw, position)
            else:
                builder.open(name, raw)
        elif kind == END:
            builder.close(token.group(4).lower())
    return builder.root


class _Builder:
    """Keeps the elements that are open; the implied end tags are the standard's, reduced to what documents use."""

    def __init__(self) -> None:
        self.root = Node("")
        self.stack = [self.root]
        self.overflow: Counter[str] = Counter()
        self.endless: set[str] = set()

    def text(self, text: str) -> None:
        self.stack[-1].children.append(strip_invisible(unescape(text)))

    def open(self, name: str, raw: str) -> None:
        if name in _CLOSES:
            self._end_open(*_CLOSES[name])
        elif name in BLOCKS and name not in _TABLE_PARTS:
            self._end_open(*_CLOSES_P)
            if name in HEADINGS and self.stack[-1].name in HEADINGS:
                self.stack.pop()
        if len(self.stack) > MAX_DEPTH and name not in VOID and not self._is_last_floor(name):
            self.overflow[name] += 1
            return
        node = Node(name, raw)
        if _is_dropped(node):
            # What it holds says nothing about the elements around it.
            node.block = node.headed = True
        else:
            self._attach(node)
        if name not in VOID:
            self.stack.append(node)

    def skip(self, html: str, name: str, start: int) -> int:
        """Return the position behind a raw element."""
        end = None if name in self.endless else after_raw(html, name, start)
        if end is not None:
            return end
        # Browsers drop all that follows an open script; an open svg is a slip of the author's, whose text must stay.
        self.endless.add(name)
        return start if name == "svg" else len(html)

    def preformatted(self, html: str, raw: str, start: int) -> int:
        """Open a `pre`; where it holds only text and spans, as most code does, take it whole and return its end."""
        self.open("pre", raw)
        stop = _NOT_PLAIN.search(html, start)
        content = html[start : stop.start()] if stop else ""
        if not stop or stop.group() != "</pre>" or _HINT.search(content) or self.overflow["pre"]:
            return start
        code = _CODE_TAG.search(content)
        if code:
            self.open("code", code.group(1))
        self.text(TAG.sub("", content))
        self.close("pre")
        return stop.end()

    def close(self, name: str) -> None:
        if self.overflow[name]:
            self.overflow[name] -= 1
            return
        walls = _CELL_WALLS if name in BLOCKS and name not in _TABLE_PARTS and name != "table" else frozenset[str]()
        for depth in range(len(self.stack) - 1, 0, -1):
            open_name = self.stack[depth].name
            if open_name == name:
                del self.stack[depth:]
                return
            # "</span>" doesn't end the block around it, "</div>" doesn't end the table cell around it.
            if open_name in walls or (open_name in BLOCKS and name not in BLOCKS):
                return

    def _is_last_floor(self, name: str) -> bool:
        """Return whether an element is one that says what its text is, and may stand below the deepest container."""
        return name in _FLOORS and self.stack[-1].name not in _FLOORS

    def _attach(self, node: Node) -> None:
        self.stack[-1].children.append(node)
        if node.block:
            for ancestor in reversed(self.stack):
                if ancestor.block and (ancestor.headed or not node.headed):
                    break
                ancestor.block = True
                ancestor.headed = ancestor.headed or node.headed

    def _end_open(self, names: set[str], walls: set[str] | frozenset[str]) -> None:
        for depth in range(len(self.stack) - 1, 0, -1):
            name = self.stack[depth].name
            if name in names:
                del self.stack[depth:]
                return
            if name in walls:
                return


def _is_dropped(node: Node) -> bool:
    if node.name in _DROPPED:
        return node.get("role") != "tab"
    if not _HINT.search(node._raw):
        return False
    return _is_excluded(node) or _is_hidden(node) or _has_dropped_class(node)


def _is_excluded(node: Node) -> bool:
    # A heading marked so excludes its whole section, which only the outline knows; it stays in the tree for that.
    excluded = node.get("data-search-exclude") is not None and node.name not in HEADINGS
    return (
        excluded or node.get("data-pagefind-ignore") is not None or node.get("role") in ("navigation", "doc-backlink")
    )


def _is_hidden(node: Node) -> bool:
    hidden = node.get("hidden")
    if hidden is not None and hidden.lower() != "until-found":
        # The panels of tabs that aren't chosen are hidden until a reader chooses them.
        return node.get("role") != "tabpanel"
    return _UNSEEN.search(node.get("style") or "") is not None


def _has_dropped_class(node: Node) -> bool:
    return not _DROPPED_CLASSES.isdisjoint(node.classes) or (node.name == "span" and node.classes == [_DROPPED_SPAN])
