"""Tags and text of HTML, cut as browsers cut them; an element, and whether it shows something of the page's own.

Python's own `html.parser` takes quadratic time on hostile input (38 s for 60 kB of "<a " on 3.11.7) and changed how it
reads comments and scripts between patch releases, which would change chunk ids between machines. One pattern that
never goes back is linear and the same everywhere.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias
from urllib.parse import unquote

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


HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
BLOCKS = HEADINGS | frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer header hgroup hr html legend li main menu nav ol p pre search section summary table tbody td tfoot th"
    " thead tr ul".split()
)
DROPPED = RAW | frozenset("audio button canvas dialog input map menu nav noscript object select template video".split())
_DROPPED_CLASSES = frozenset(
    "linenos linenodiv lineno lnt ln gutter rouge-gutter line-numbers-wrapper visually-hidden sr-only"
    " screen-reader-text screen-reader-only md-source-file theme-last-updated katex-html copybtn backrefs doc-labels"
    " clipboard-copy-txt jp-InputPrompt jp-OutputPrompt prompt input_prompt output_prompt".split()
)
#: ARIA's roles of what stands beside the content or above it.
_DROPPED_ROLES = frozenset("alertdialog dialog menu menubar navigation search toolbar".split())
# pdoc's dump of the code that a name stands for; in a docstring the class is that of an example.
SOURCE_DUMP = "pdoc-code"
# Too common a word to be dropped elsewhere; VitePress writes a fence's language into such a span.
_DROPPED_SPAN = "lang"
# The list of a page's headings that docutils writes for `contents`; each class alone may stand for anything.
_DROPPED_LIST = frozenset(("contents", "topic"))
# Attributes are parsed only of tags that hold one of these words; most hold none.
_EXCLUSIONS = ("data-search-exclude", "data-chapterverse-exclude")
_HINTS = (
    _DROPPED_CLASSES | _DROPPED_ROLES | frozenset(_EXCLUSIONS)
    | {"hidden", "data-pagefind-ignore", "display", "font-size", "doc-backlink", "contents"}
    | {_DROPPED_SPAN, SOURCE_DUMP}
)  # fmt: skip
#: Classes of sets of tabs, and of panels, that are older than ARIA.
TAB_SETS = frozenset("tabbed-set sd-tab-set tab-set vp-code-group".split())
TAB_PANELS = frozenset("tabbed-block sd-tab-content codetab texttab tabpanel".split())
#: Classes of a line that is removed from or added to a code; the spans that a highlighter writes have others.
LINE_MARKS = {
    **dict.fromkeys(("remove", "removed", "del", "deleted", "deletion"), "-"),
    **dict.fromkeys(("add", "added", "ins", "inserted", "insertion"), "+"),
}
_TAB_WORDS = TAB_SETS | TAB_PANELS | {"tab", "tabbutton"}
# Styles that hide an element from all readers; `aria-hidden` hides it from screen readers alone.
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:\.0*)?(?:[a-z]+|%)?\s*(?:!|;|\Z)", re.IGNORECASE
)


class Node:
    """An element: its `name`, its `children` in order, and facts that readers ask often.

    Attributes:
        block: it is displayed as a block, or holds one.
        headed: it is a heading, or holds one.
        holds: whether it is, or holds, what may be a part of `TABS` or one of `MARKED_LINES`, as bits.
        raw: its attributes as they are written.
    """

    __slots__ = ("_attributes", "_classes", "block", "children", "headed", "holds", "name", "raw")

    def __init__(self, name: str, raw: str = "") -> None:
        self.name = name
        self.children: list[Child] = []
        self.block = name in BLOCKS
        self.headed = name in HEADINGS
        self.holds = 0
        self.raw = raw
        self._attributes: dict[str, str] | None = None
        self._classes: list[str] | None = None

    def get(self, attribute: str) -> str | None:
        """Return the value of an attribute, "" if it has none, None if it is absent."""
        if not self.raw:
            return None
        if self._attributes is None:
            self._attributes = parse_attributes(self.raw)
        return self._attributes.get(attribute)

    def integer(self, attribute: str, default: int) -> int:
        """Return the value of an attribute that is a number of up to nine digits or so many pixels, else `default`."""
        digits = (self.get(attribute) or "").removesuffix("px")
        return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else default

    @property
    def classes(self) -> list[str]:
        if self._classes is None:
            self._classes = (self.get("class") or "").split()
        return self._classes

    @property
    def target_id(self) -> str:
        """The id on this page that a link leads to, decoded; "" if it leads elsewhere."""
        href = self.get("href") or ""
        return unquote(href[1:]) if href.startswith("#") else ""

    def elements(self) -> list[Node]:
        """Return the child elements without the text between them."""
        return [c for c in self.children if isinstance(c, Node)]

    def walk(self) -> Iterator[Node]:
        """Yield the elements inside this one in document order."""
        rest = self.children[::-1]
        while rest:
            node = rest.pop()
            if not isinstance(node, str):
                yield node
                rest.extend(reversed(node.children))

    def text(self) -> str:
        """Return all text inside, with its whitespace unchanged and a newline for `<br>`."""
        if len(self.children) == 1 and isinstance(self.children[0], str):
            return self.children[0]
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


def find_hints(raw: str) -> int:
    """Return what the words of a tag say that it may be; most say nothing."""
    # Three times as fast as a pattern of the words.
    for sign in "\"'=:;/":
        raw = raw.replace(sign, " ")
    words = raw.split()
    if _ALL_HINTS.isdisjoint(words):
        return 0
    return sum(flag for flag, hints in _FLAGS if not hints.isdisjoint(words))


MAY_BE_DROPPED, TABS, MARKED_LINES = 1, 2, 4
_FLAGS = ((MAY_BE_DROPPED, _HINTS), (TABS, _TAB_WORDS), (MARKED_LINES, frozenset(LINE_MARKS)))
_ALL_HINTS = frozenset().union(*(words for _, words in _FLAGS))


def is_task_box(field: Node, around: list[str]) -> bool:
    """Return whether a field is the box of a task; another checkbox is there to be clicked."""
    if field.get("type") != "checkbox" or field.get("aria-hidden") == "true":
        return False
    return "li" in around or field.get("disabled") is not None


def is_excluded(node: Node) -> bool:
    """Whether the author kept an element out. Material's search strips the first mark; our plugin adds the second."""
    return any(node.get(mark) is not None for mark in _EXCLUSIONS)


def is_left_out(node: Node, around: Node) -> bool:
    """Return whether an element is nothing of the page's own, by its attributes."""
    # A heading marked so excludes its whole section, which only the outline knows; it stays in the tree for that.
    excluded = is_excluded(node) and node.name not in HEADINGS
    return (
        excluded
        # On an element of its own name it is a component that says so, not the author.
        or (node.get("data-pagefind-ignore") is not None and "-" not in node.name)
        or node.get("role") in _DROPPED_ROLES
        # A link back from a footnote. The text of a heading that a list of contents names is such a link as well, and
        # so is a citation's label.
        or (node.get("role") == "doc-backlink" and "toc-backref" not in node.classes and "label" not in around.classes)
        or not _DROPPED_CLASSES.isdisjoint(node.classes)
        or (node.name == "span" and node.classes == [_DROPPED_SPAN])
        or _DROPPED_LIST.issubset(node.classes)
    )


def is_hidden(node: Node) -> bool:
    """Return whether an element shows nothing until a control opens it."""
    hidden = node.get("hidden")
    if hidden is not None and hidden.lower() != "until-found":
        # The panels of tabs that aren't chosen are hidden until a reader chooses them, and so are named regions.
        return node.get("role") != "tabpanel" and (node.get("role") != "region" or not node.get("aria-labelledby"))
    return _UNSEEN.search(node.get("style") or "") is not None
