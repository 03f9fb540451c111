"""An independent look at a page, by the standard library's parser: its ids, its headings, the text that a "
"reader sees."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

from chapterverse.model import Section

_VOID = set("area base br col embed hr img input link meta param source track wbr".split())
_UNSEEN = {"script", "style", "svg", "nav", "button", "template", "noscript", "form", "iframe", "select"}
_SIGNS = {
    "headerlink", "hash-link", "header-anchor", "footnote-ref", "footnote-backref", "linenos", "lang",
    "mkdocstrings-source", "fn-bracket",
}  # fmt: skip


class Seen(HTMLParser):
    """What stands in well-formed HTML.

    Attributes:
        ids: every id, in order.
        headings: (name, id) of h1 to h6.
        text: the visible text, without signs that link to themselves.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.headings: list[tuple[str, str | None]] = []
        self._pieces: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if attributes.get("id"):
            self.ids.append(attributes["id"] or "")
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append((tag, attributes.get("id")))
        if tag not in _VOID:
            classes = set((attributes.get("class") or "").split())
            self._open.append((tag, tag in _UNSEEN or bool(classes & _SIGNS)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(unseen for _, unseen in self._open):
            self._pieces.append(data)


def characters(text: str) -> Counter[str]:
    """Return how often each letter and digit occurs: what no change of markup may lose."""
    return Counter(c for c in text if c.isalnum())


def words_of(sections: tuple[Section, ...]) -> str:
    """Return all text of sections, headings included."""
    return "\n".join([s.heading or "" for s in sections] + [b.text for s in sections for b in s.blocks])
