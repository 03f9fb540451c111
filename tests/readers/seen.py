"""An independent reading of a page with the standard library's parser: the oracle for the HTML reader.

Only for markup that is well formed; the library's parser is neither linear nor the same in all patch releases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser

from chapterverse.model import Block, Section

_VOID = set("area base br col embed hr img input link meta param source track wbr".split())

#: What is no content of the page: elements, and signs that lead to themselves or number lines.
UNSEEN = {"script", "style", "svg", "nav", "button", "template", "noscript", "form", "iframe", "select"}
ROLES = {"dialog", "doc-noteref", "menu", "navigation", "search"}
SIGNS = {
    "headerlink", "hash-link", "header-anchor", "footnote-ref", "footnote-reference", "footnote-backref", "linenos",
    "lang", "mkdocstrings-source", "fn-bracket", "sr-only", "visually-hidden", "hx:mt-1.5",
    "hx:print:hidden", "lineno",
}  # fmt: skip


class Seen(HTMLParser):
    """What stands in well-formed HTML.

    Attributes:
        ids: every id, in order.
        headings: (name, id) of h1 to h6.
        anchors: what must be linked to, in order: the id of each heading, of the section that it opens or of the anchor
            before it, and of each documented name (`dt`) that has a link of its own.
        text: the visible text, without signs that link to themselves.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.headings: list[tuple[str, str | None]] = []
        self.anchors: list[str] = []
        self._pieces: list[str] = []
        self._open: list[tuple[str, bool, str]] = []
        self._headed: set[str] = set()
        # The id of an anchor that nothing stands behind yet.
        self._place = ""
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        name = attributes.get("id") or ""
        classes = set((attributes.get("class") or "").split())
        if name:
            self.ids.append(name)
        self._place = (name or attributes.get("name") or "") if tag == "a" else self._place
        if any(unseen for _, unseen, _ in self._open):
            pass
        elif len(tag) == 2 and tag[0] == "h" and tag[1].isdigit() and not classes & SIGNS:
            self.headings.append((tag, attributes.get("id")))
            self._anchor(name or self._section() or self._place)
        elif name and self._open and self.headings[-1:] == [(self._open[-1][0], None)]:
            # In a heading without an id.
            self._anchor(name)
        elif tag == "dt" and "sig" in classes:
            self._anchor(name)
        elif tag == "a" and "headerlink" in classes:
            self._anchor(next((opened for kind, _, opened in reversed(self._open) if kind == "dt"), ""))
        if tag not in _VOID:
            unseen = tag in UNSEEN or bool(classes & SIGNS) or attributes.get("role") in ROLES
            self._open.append((tag, unseen, name))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(unseen for _, unseen, _ in self._open):
            self._pieces.append(data)
            self._place = "" if data.strip() else self._place

    def _section(self) -> str:
        """Return the id of the innermost open section if this is its first heading."""
        name = next((opened for kind, _, opened in reversed(self._open) if kind == "section"), "")
        first = name not in self._headed
        self._headed.add(name)
        return name if first else ""

    def _anchor(self, name: str) -> None:
        if name and name not in self.anchors:
            self.anchors.append(name)


def characters(text: str) -> Counter[str]:
    """Return the counts of letters and digits, ignoring case, which changes of markup must preserve."""
    return Counter(c for c in text.lower() if c.isalnum())


def words_of(sections: tuple[Section, ...]) -> str:
    """Return all text of sections, headings included."""
    return "\n".join([s.heading or "" for s in sections] + [b.text for s in sections for b in s.blocks])


def lost(html: str, sections: tuple[Section, ...]) -> Counter[str]:
    """Return the visible letters and digits of a content root that are in no heading and no block."""
    return characters(Seen(html).text) - characters(words_of(sections))


def ink(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def leaf_texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the head and text of every block without parts, and the heads of the others."""
    for block in blocks:
        yield block.head
        if block.parts:
            yield from leaf_texts(block.parts)
        else:
            yield block.text


def is_within(needle: str, haystack: str) -> bool:
    """Return whether `haystack` contains the letters of `needle` in order, possibly with others between."""
    rest = iter(haystack)
    return all(letter in rest for letter in needle)
