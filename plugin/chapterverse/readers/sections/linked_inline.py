r"""Converts inline HTML to Markdown that other programs can parse: addresses are kept, and signs are escaped.

The index needs neither (see `inline`). A page as a file needs both: a reader follows its links, and a `<T>` or a
`*args` in its text must not become markup.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import urljoin, urlsplit

from chapterverse.readers.html.dom import Child, Node
from chapterverse.readers.html.visible_text import collapse
from chapterverse.readers.sections.inline import Inline, alternative_text, is_decoration
from chapterverse.readers.sections.labels import footnote_label

#: Other schemes run code, hold data or lead to files of a machine: such a link keeps its text alone.
_SCHEMES = frozenset(("http", "https", "mailto", "tel"))

# Signs that would be markup. At the end of a piece of text, the next piece decides, so they are escaped there as well.
_SIGNS = re.compile(
    r"""\\(?=[!-/:-@\[-`{-~]|\Z)  # a backslash that would escape
    | `
    | \*(?:(?<!\s\*)|(?!\s))
    | (?<![^\W_])_+ | _+(?![^\W_])  # not inside a word
    | <(?=[a-zA-Z/!?]) | &(?=\#?\w{1,40};)
    | \[(?=\^|[ xX]\]) | \](?=[(\[:]|\Z)
    | ~~+""",
    re.VERBOSE,
)
_SIGN = re.compile(r"[\\`*_<&\[\]~]")
_BRACKETS = re.compile(r"(?<!\\)[\[\]]")
# Signs that begin a block at the start of a line; the sign behind a number is escaped, not the number.
_LINE_START = re.compile(
    r"^(\d{1,9}(?=[.)](?:\s|$))|(?=\#{1,6}(?:\s|$)|[-+](?:\s|$)|>|=+\s*$|--+\s*$|~~~|\||:?-+:?\s*\|))", re.MULTILINE
)
_LINE_SIGNS = frozenset("#-+>=~|:")
# A link into its own page, without what `urljoin` would change.
_FRAGMENT = re.compile(r"#[\w.:%-]+")
_UNSAFE = re.compile(r"[\s<>\x00-\x1f\x7f]")
_REFERENCE = re.compile(r"&(?=#?\w{1,40};)")


def escape(text: str) -> str:
    """Return text as Markdown that shows exactly this text, inside a line."""
    # Most texts hold no sign, and to look for one of a class is fast.
    return _SIGNS.sub(lambda signs: "".join(f"\\{sign}" for sign in signs[0]), text) if _SIGN.search(text) else text


def _escape_line_starts(text: str) -> str:
    """Return inline Markdown of which no line begins a block of its own."""
    first = text[:1]
    may_begin = "\n" in text or first in _LINE_SIGNS or first.isdecimal()
    return _LINE_START.sub(r"\1\\", text) if may_begin else text


class LinkedInline(Inline):
    """Renders inline content with links and images.

    Args:
        footnotes: ids of the page's footnotes.
        base: the address that relative links of the page start from.
    """

    def __init__(self, footnotes: Collection[str], base: str) -> None:
        super().__init__(footnotes)
        self._base = base
        self._page = absolute("#a", base).removesuffix("#a")
        self._in_link = False

    def markdown(self, children: Iterable[Child]) -> str:
        return _escape_line_starts(super().markdown(children))

    def heading(self, children: Iterable[Child]) -> str:
        children = list(children)
        line = self.one_line(children) or escape(super().heading(children))
        # Behind a space it would be the end of the heading's mark.
        return re.sub(r"(?:^|(?<= ))(#+)$", r"\\\1", line)

    def address(self, node: Node, attribute: str = "href") -> str:
        href = node.get(attribute) or ""
        return f"{self._page}{href}" if self._page and _FRAGMENT.fullmatch(href) else absolute(href, self._base)

    def _text(self, text: str) -> str:
        return _escape_brackets(escape(text)) if self._in_link else escape(text)

    def _element(self, node: Node, out: list[str]) -> None:
        if node.name == "img":
            out.append(self._image(node))
        elif node.name == "q":
            out.append(f"“{collapse(self._raw(node.children))}”")
        else:
            # Before a link it would make an image of it.
            if node.name == "a" and out and out[-1].endswith("!"):
                out[-1] = f"{out[-1][:-1]}\\!"
            super()._element(node, out)

    def _link(self, node: Node) -> str:
        address = "" if self._in_link or node.target_id in self.footnotes else self.address(node)
        if not address:
            return super()._link(node)
        self._in_link = True
        text = super()._link(node)
        self._in_link = False
        if not (core := text.strip()):
            return text
        before, _, after = text.partition(core)
        return f"{before}[{core}]({destination(address)}){after}"

    def _reference(self, link: Node) -> str:
        return f"[^{footnote_label(link)}]"

    def _image(self, node: Node) -> str:
        alt, address = alternative_text(node), self.address(node, "src")
        if is_decoration(node, alt):
            return ""
        return f"![{_escape_brackets(escape(alt))}]({destination(address)})" if address else escape(alt)


def _escape_brackets(text: str) -> str:
    return _BRACKETS.sub(r"\\\g<0>", text)


def absolute(href: str, base: str) -> str:
    """Return the absolute address of a link, "" if it leads to no page, mailbox or telephone."""
    try:
        address = urljoin(base, href.strip())
        has_known_scheme = urlsplit(address).scheme.lower() in _SCHEMES
    except ValueError:
        return ""
    return _UNSAFE.sub(lambda sign: f"%{ord(sign[0]):02X}", address) if href and has_known_scheme else ""


def destination(address: str) -> str:
    """Return an address as the destination of a Markdown link."""
    address = _REFERENCE.sub("&amp;", address)
    return f"<{address}>" if re.search(r"[()\\]", address) else address
