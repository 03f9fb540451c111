"""A small tree of the visible part of an HTML fragment, tolerant of every kind of markup.

Elements that show nothing, or nothing of the page's own (scripts, navigation, fields, hidden and excluded elements),
are parsed for their extent and left out. A hidden element stays where a visible control opens it: a tab, an accordion's
button. The tree is at most `MAX_DEPTH` deep, so that its readers may recurse.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Set
from itertools import islice

from chapterverse.errors import PageTooLarge
from chapterverse.readers.html.dom import (
    BLOCKS,
    DROPPED,
    HEADINGS,
    MAY_BE_DROPPED,
    RAW,
    SOURCE_DUMP,
    TOKEN,
    VOID,
    Child,
    Node,
    after_raw,
    find_hints,
    is_hidden,
    is_left_out,
    is_task_box,
)  # fmt: skip
from chapterverse.readers.html.visible_text import strip_invisible, unescape

# The bounds count what a page holds and never the time that it takes: an index must not depend on the machine. Reading
# takes time linear in each of them. Of the documentations that we measure on, no page has a million characters.
#: Characters of a page's HTML, and elements of its tree, those in preformatted code not counted.
MAX_PAGE_CHARS, MAX_ELEMENTS = 20_000_000, 500_000
#: Levels of the tree. Deeper containers lose their tags and keep their text, so that one that hides it can't be read.
MAX_DEPTH = 100

_TABLE_PARTS = frozenset("caption col colgroup tbody td tfoot th thead tr".split())
_CELL_WALLS = frozenset(("td", "th", "caption", "table"))

#: Elements that hold nothing but a line of text, or code.
_FLOORS = HEADINGS | {"p", "pre"}

#: Elements that a start tag closes: any of the first, unless one of the second is between.
_CLOSES: dict[str, tuple[Set[str], Set[str]]] = {
    **dict.fromkeys(BLOCKS - _TABLE_PARTS, ({"p"}, _CELL_WALLS)),
    "li": ({"li"}, {"ul", "ol", "menu", "table", "td", "th"}),
    **dict.fromkeys(("dt", "dd"), ({"dt", "dd"}, {"dl", "table", "td", "th"})),
    **dict.fromkeys(("td", "th"), ({"td", "th"}, {"tr", "table"})),
    "tr": ({"tr"}, {"table"}),
    **dict.fromkeys(("thead", "tbody", "tfoot"), ({"thead", "tbody", "tfoot", "caption"}, {"table"})),
}

#: A tag, a comment or a stray "<", with the text behind it.
_TOKEN = re.compile(rf"(?:{TOKEN.pattern})([^<]*+)", TOKEN.flags)

_NOT_PLAIN = re.compile(r"</pre>|<(?!/?(?:span|code|a)[\s>])")
# The start tags in code, without those that have addresses only: every line may have one, and no two are alike.
_CODE_TAGS = re.compile(r"""<(?!/|\w++(?>(?:\s(?:id|name|href)="[^"<>]*+")*)>)([^>]*+)(?:>|\Z)""")
_SIMPLE_TAG = re.compile(r"""\w++(?>(?:\s++[\w:.-]++(?:="[^"]*+")?)*)\s*+""")
_ANY_TAG = re.compile(r"<[^>]*+(?:>|\Z)")
_CODE_TAG = re.compile(r"<code\b([^>]*+)(?:>|\Z)", re.IGNORECASE)
#: Attributes by which a control names what it opens; `href` is one of them only where the control says so.
_CONTROLS = ("aria-controls", "data-bs-target", "data-target", "href")
#: Elements inside the one before a hidden element among which its control is looked for.
_NEAR = 8


def require_at_most(most: int, number: int, unit: str) -> None:
    """Raise `PageTooLarge` for more than so many of a unit: a page that takes more must not hold up a build."""
    if number > most:
        raise PageTooLarge(f"holds more than {most:,} {unit}, too many for a page.")


def parse_html(html: str) -> Node:
    """Return the tree of a fragment under a nameless root. Takes time linear in the length.

    Raises:
        PageTooLarge: it is beyond a bound.
    """
    require_at_most(MAX_PAGE_CHARS, len(html), "characters")
    if "\r" in html:
        html = html.replace("\r\n", "\n").replace("\r", "\n")
    builder = _Builder(html)
    position = 0
    while position < len(html):
        position = builder.read(position)
    if builder.closed:
        _remove_unnamed(builder.root, builder.closed)
    return builder.root


class _Builder:
    """Keeps the open elements. Implied end tags follow the standard, reduced to the elements that documents use.

    Attributes:
        open: the open elements, the root first; `names` has their names.
        overflow: how many open elements of each name were too deep for the tree.
        elements: how many elements were met.
        endless: names of raw elements that have no end tag from here on.
        closed: hidden elements that a control may open, with the elements around them.
    """

    def __init__(self, html: str) -> None:
        self.html = html
        self.root = Node("")
        self.open = [self.root]
        self.names = [""]
        self.overflow: dict[str, int] = {}
        self.elements = 0
        self.endless: set[str] = set()
        self.closed: dict[Node, Node] = {}
        # Most tags of a page occur many times. Attributes may be long, so the caches end with the page.
        self.hints = functools.cache(find_hints)
        self.is_plain = functools.cache(_is_plain)

    def read(self, position: int) -> int:
        """Read from `position` up to an element that is skipped or taken whole; return where to go on."""
        html = self.html
        first = html.find("<", position)
        if first < 0:
            first = len(html)
        if first > position:
            self.text(html[position:first])
        for token in _TOKEN.finditer(html, first):
            start, raw, end, stray, text = token.groups()
            if start:
                name = start.lower()
                if name in RAW:
                    return self.skip(name, token.start(5))
                if name == "pre":
                    return self.take_preformatted(raw, token.start(5))
                self.start(name, raw)
            elif end:
                self.end(end.lower())
            elif stray:
                self.text(stray)
            if text:
                self.text(text)
        return len(html)

    def text(self, text: str) -> None:
        self.open[-1].children.append(text if text == "\n" else strip_invisible(unescape(text)))

    def start(self, name: str, raw: str) -> None:
        closes = _CLOSES.get(name)
        if closes:
            self._end_open(*closes)
            if name in HEADINGS and self.names[-1] in HEADINGS:
                self._leave(-1)
        self.elements += 1
        require_at_most(MAX_ELEMENTS, self.elements, "elements")
        node = Node(name, raw)
        hints = self.hints(raw) if raw else 0
        is_dropped = (name in DROPPED or hints > 0) and self._is_dropped(node)
        if len(self.open) > MAX_DEPTH and name not in VOID and not self._is_last_floor(name):
            self.overflow[name] = self.overflow.get(name, 0) + 1
            if is_dropped:
                raise PageTooLarge(f"hides an element below {MAX_DEPTH} others, too deep for a page.")
            return
        if is_dropped:
            # Its content makes no block and no heading of the elements around it.
            node.block = node.headed = True
        else:
            around = self.open[-1]
            around.children.append(node)
            if node.block and not (around.block and around.headed >= node.headed):
                self._mark_around(node)
            if hints > MAY_BE_DROPPED:
                self._note_held(node, hints)
        if name not in VOID:
            self.open.append(node)
            self.names.append(name)

    def skip(self, name: str, start: int) -> int:
        end = None if name in self.endless else after_raw(self.html, name, start)
        if end is not None:
            return end
        # Browsers drop the text behind an unclosed script. An unclosed svg is a mistake, and its text must stay.
        self.endless.add(name)
        return start if name == "svg" else len(self.html)

    def take_preformatted(self, raw: str, start: int) -> int:
        """Open a `pre`; where it holds only text and spans, as most code does, take it whole and return its end."""
        self.start("pre", raw)
        stop = _NOT_PLAIN.search(self.html, start)
        if not stop or stop.group() != "</pre>" or self.overflow.get("pre"):
            return start
        content = self.html[start : stop.start()]
        if content.rfind("<") > content.rfind(">") or not all(map(self.is_plain, {*_CODE_TAGS.findall(content)})):
            return start
        code = _CODE_TAG.search(content)
        if code:
            self.start("code", code.group(1))
        self.text(_ANY_TAG.sub("", content))
        self.end("pre")
        return stop.end()

    def end(self, name: str) -> None:
        if self.overflow and self.overflow.get(name):
            self.overflow[name] -= 1
        elif self.names[-1] == name:
            self.open.pop()
            self.names.pop()
        elif name in self.names:
            walls = _CELL_WALLS if name in BLOCKS and name not in _TABLE_PARTS and name != "table" else ()
            for depth in range(len(self.names) - 1, 0, -1):
                open_name = self.names[depth]
                if open_name == name:
                    self._leave(depth)
                    break
                # "</span>" doesn't end the block around it, "</div>" doesn't end the table cell around it.
                if open_name in walls or (open_name in BLOCKS and name not in BLOCKS):
                    break

    def _is_dropped(self, node: Node) -> bool:
        if node.name == "button":
            return not {"pre", "code"}.isdisjoint(self.names) and node.get("role") != "tab"
        if node.name == "input":
            return not is_task_box(node, self.names)
        if node.name in DROPPED or is_left_out(node, self.open[-1]):
            return node.name not in DROPPED or node.get("role") != "tab"
        if node.name == "div" and SOURCE_DUMP in node.classes:
            return not any("docstring" in around.classes for around in self.open)
        return is_hidden(node) and not self._may_be_opened(node)

    def _may_be_opened(self, node: Node) -> bool:
        """Return whether a control may open a hidden element: it has a name for it, or stands right behind it."""
        around = self.open[-1]
        if opener := next(filter(_is_opener, islice(_near(around.children[-2:]), _NEAR)), None):
            _make_details(opener, node, around)
            return True
        if node.get("id"):
            self.closed[node] = around
        return node in self.closed

    def _leave(self, depth: int) -> None:
        del self.open[depth:]
        del self.names[depth:]

    def _is_last_floor(self, name: str) -> bool:
        """Return whether an element gives its text a meaning, so that it may be below the deepest container."""
        return name in _FLOORS and self.names[-1] not in _FLOORS

    def _mark_around(self, node: Node) -> None:
        for ancestor in reversed(self.open):
            if ancestor.block and ancestor.headed >= node.headed:
                break
            ancestor.block = True
            ancestor.headed = ancestor.headed or node.headed

    def _note_held(self, node: Node, hints: int) -> None:
        for ancestor in (node, *reversed(self.open)):
            if ancestor.holds & hints == hints:
                break
            ancestor.holds |= hints

    def _end_open(self, names: Set[str], walls: Set[str]) -> None:
        if names.isdisjoint(self.names):
            return
        for depth in range(len(self.names) - 1, 0, -1):
            name = self.names[depth]
            if name in names:
                self._leave(depth)
                break
            if name in walls:
                break


def _is_plain(tag: str) -> bool:
    """Return whether a tag ends where it seems to, and its element is shown and no line of a diff."""
    return _SIMPLE_TAG.fullmatch(tag) is not None and not find_hints(tag)


def _is_opener(node: Node) -> bool:
    return node.get("aria-expanded") is not None


def _make_details(opener: Node, panel: Node, around: Node) -> None:
    """Make a `details` of a hidden box and the control right before it, which is its title unless it is a heading's."""
    if panel.name == "div" and opener in around.children[-2:] and not opener.headed and opener.get("role") != "tab":
        around.children.remove(opener)
        opener.name, opener.block, panel.name = "summary", True, "details"
        panel.children.append(opener)


def _near(children: list[Child]) -> Iterator[Node]:
    """Yield the last element of some and those inside it, of each the first ones."""
    rest = [child for child in children if isinstance(child, Node)][-1:]
    while rest:
        node = rest.pop()
        yield node
        rest += [child for child in reversed(node.children[:_NEAR]) if isinstance(child, Node)]


def _remove_unnamed(root: Node, closed: dict[Node, Node]) -> None:
    """Remove the hidden elements that no control of the visible ones names. Takes time linear in the tree's size."""
    unnamed: dict[str, list[Node]] = {}
    named: set[str] = set()
    rest = [root]
    while rest:
        node = rest.pop()
        if node in closed and (name := node.get("id") or "") not in named:
            unnamed.setdefault(name, []).append(node)
            continue
        for name in _controlled(node) - named:
            named.add(name)
            rest += unnamed.pop(name, [])
        rest.extend(node.elements())
    removed = {node for nodes in unnamed.values() for node in nodes}
    for around in {closed[node] for node in removed}:
        around.children = [child for child in around.children if isinstance(child, str) or child not in removed]


def _controlled(node: Node) -> set[str]:
    """Return the ids of the elements that an element opens."""
    if "aria-" not in node.raw and "-target" not in node.raw:
        return set()
    attributes = _CONTROLS if _is_opener(node) else _CONTROLS[:-1]
    return {name.removeprefix("#") for attribute in attributes for name in (node.get(attribute) or "").split()}
