"""Converts inline HTML to Markdown.

Links keep only their text: an address costs tokens and says little, and retrieval finds the linked page anyway.
Text is not escaped. A paragraph of which the Markdown source is known stays as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from chapterverse.model import Image
from chapterverse.readers.html.dom import Child, Node
from chapterverse.readers.html.visible_text import collapse, strip_invisible

#: The element around a paragraph that stays as written; its attribute `n` is the index in `Inline.verbatim`.
VERBATIM = "verbatim"

#: Labels that themes set beside the words of a heading; VitePress makes no part of its own outline of them either.
#: So is Sphinx's link to the source of a signature.
_HEADING_BADGES = frozenset("VPBadge sl-badge sd-badge mdx-badge badge ignore-header viewcode-link".split())
#: What a heading holds besides its words, as a badge behind them; one that begins it is a word, as an API's method.
_BESIDE = frozenset(("img", "badge", "button", "label"))
_BADGE_HOST = re.compile(
    r"//(?:[^/]*[/.])?(?:badges?|shields|badgen|codecov|coveralls|travis-ci|circleci|appveyor)[/.]"
)
_BADGE_PATH = re.compile(r"/badges?[/.]")
_THEME_RELS = frozenset(("edit", "next", "prev"))
_EDIT_ADDRESS = re.compile(r"/(?:edit|_edit)/|[?&]mode=edit\b")
# Alternative texts that only say that there is an image: an emoji or its name, a file's name, the kind of image. Some
# emoji mean yes or no, mostly in tables, and stay.
_EMPTY_ALT = re.compile(
    r"[^\w✅✔☑❌✖❎]+|:[\w+-]+:|\S+\.(?:png|jpe?g|gif|svg|webp|avif|ico)"
    r"|(?:image|img|icon|logo|screenshot|banner|alt text|no description has been provided for this image)",
    re.IGNORECASE,
)
_MAX_ICON_PIXELS = 32
#: Characters of an image's address, and of its texts.
_MAX_ADDRESS, _MAX_WORDS = 2048, 500
_STARRED = re.compile(r"\*{1,2}\w+")
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset(("code", "tt", "samp", "pre"))

# Line breaks, list items and the spaces of a verbatim paragraph must survive the collapse of whitespace; visible text
# holds no control characters.
_BREAK = "\x01"
_BREAKS = re.compile(rf" ?{_BREAK}[ {_BREAK}]*")
_ITEM = "\x02"
_ITEMS = re.compile(rf" ?{_ITEM} ?")
_SPACE = "\x03"
_FIRST_ITEM = re.compile(rf"(?:^|(?<=[:.,;!?])) ?{_ITEM} ?")
_BACKTICKS = re.compile("`+")


class Inline:
    """Renders runs of inline content; `notes` and `images` grow until a reader takes what it met.

    Attributes:
        footnotes: ids of the page's footnotes; a link to one of them is a reference.
        verbatim: paragraphs as their Markdown source has them, by index.
    """

    def __init__(self, footnotes: Collection[str] = (), verbatim: Sequence[str] = ()) -> None:
        self.footnotes = footnotes
        self.verbatim = verbatim
        self.notes: list[str] = []
        self.images: list[Image] = []
        self._open: set[str] = set()

    def markdown(self, children: Iterable[Child]) -> str:
        """Return inline Markdown; `<br>` becomes a newline."""
        if self.verbatim:
            children = map(self._as_written, children)
        text = collapse(self._raw(children))
        if _BREAK in text:
            text = _BREAKS.sub("\n", text).strip("\n")
        return text.replace(_SPACE, " ")

    def one_line(self, children: Iterable[Child]) -> str:
        """Return Markdown without a newline, made of inline content and of blocks: for table cells and titles."""
        line = collapse(self._raw(children).replace(_BREAK, " "))
        return _ITEMS.sub("; ", _FIRST_ITEM.sub(" ", line)).strip() if _ITEM in line else line

    def title(self, children: Iterable[Child]) -> str:
        """Return one line that is going to be set in bold as a whole."""
        children = list(children)
        self._open.add("**")
        # A button beside the words only opens what they name.
        words = [child for child in children if isinstance(child, str) or child.name != "button"]
        line = self.one_line(words) or self.one_line(children)
        self._open.remove("**")
        return line

    def heading(self, children: Iterable[Child]) -> str:
        """Return plain text without marks, footnote references and permalinks; "" for a heading of signs alone."""
        children = list(children)
        # A logo may be all of a heading, and some themes make all of it its own permalink; a mere "¶" names nothing.
        first = text = collapse(self._plain(children))
        for permalinks in (False, True):
            if any(c.isalnum() for c in text):
                return text
            text = collapse(self._plain(children, images=True, permalinks=permalinks))
        return text if any(c.isalnum() for c in text) else first

    def _as_written(self, child: Child) -> Child:
        """Return a paragraph as its source has it, where that is known."""
        if isinstance(child, str) or child.name != VERBATIM:
            return child
        for node in child.walk():
            if node.name == "img":
                self._note_image(node)
        number = child.integer("n", len(self.verbatim))
        written = self.verbatim[number : number + 1]
        return written[0].replace("\n", _BREAK).replace(" ", _SPACE) if written else child

    def _text(self, text: str) -> str:
        return text

    def _raw(self, children: Iterable[Child]) -> str:
        out: list[str] = []
        for child in children:
            if isinstance(child, str):
                out.append(self._text(child))
            else:
                self._element(child, out)
        return "".join(out)

    def _element(self, node: Node, out: list[str]) -> None:
        name = node.name
        if name in _MARKS:
            out.append(self._mark(node, _MARKS[name]))
        elif name in _CODE:
            out.append(code_span(node.text()))
        elif name == "a":
            out.append(_apart(node, self._link(node), out))
        elif name in _LEAVES:
            if name == "img":
                self._note_image(node)
            out.append(_apart(node, _LEAVES[name](node), out))
        elif name == "sup":
            out.append(self._superscript(node))
        elif node.block:
            out.append((_ITEM if name == "li" else " ") + self._raw(node.children) + " ")
        else:
            out.append(_apart(node, self._raw(node.children), out))

    def _mark(self, node: Node, mark: str) -> str:
        if mark in self._open:
            return self._raw(node.children)
        self._open.add(mark)
        inner = self._raw(node.children)
        self._open.remove(mark)
        core = inner.strip(_BREAK + " \n\t")
        if not core:
            return inner
        # Stars of the text itself, as of `**kwargs`, would be taken for marks.
        if _STARRED.fullmatch(core):
            return inner.replace(core, code_span(core))
        # In Markdown a mark touches its words, so the space inside the element moves out.
        before, after = inner.split(core, 1)
        return f"{before}{mark}{core}{mark}{after}"

    def _link(self, node: Node) -> str:
        note = node.target_id
        if note in self.footnotes:
            self.notes.append(note)
            return self._reference(node)
        return "" if is_permalink(node) else self._raw(node.children)

    def _reference(self, _link: Node) -> str:
        """Return the mark of a footnote: none, for the note itself is going to stand in the section."""
        return ""

    def _note_image(self, node: Node) -> None:
        src, alt = (node.get("src") or "").strip(), alternative_text(node)
        # An empty text says that the image is decoration, a missing one says nothing.
        if 0 < len(src) <= _MAX_ADDRESS and node.get("alt") != "" and not _is_ornament(node):
            title = strip_invisible(collapse(node.get("title") or ""))
            self.images.append(Image(src, alt[:_MAX_WORDS], title[:_MAX_WORDS]))

    def _superscript(self, node: Node) -> str:
        marks = [link for link in node.elements() if link.name == "a" and link.target_id in self.footnotes]
        # Without what is around a mark, as brackets.
        inner = self._raw(marks or node.children)
        return f"^{inner}" if inner.strip() and not marks else inner

    def _plain(
        self, children: Iterable[Child], *, images: bool = False, permalinks: bool = False, begun: bool = False
    ) -> str:
        """Return the words of a heading.

        Args:
            images: adds those of its images, buttons and badges.
            begun: words stand before these.
        """
        out: list[str] = []
        for child in children:
            if isinstance(child, str):
                text = child
            elif not images and (child.name in _BESIDE or (begun and not _HEADING_BADGES.isdisjoint(child.classes))):
                continue
            elif child.name == "a" and child.target_id in self.footnotes:
                self.notes.append(child.target_id)
                continue
            elif child.name in _LEAVES:
                text = _LEAVES[child.name](child).replace(_BREAK, " ")
            elif child.name == "a" and not permalinks and is_permalink(child):
                continue
            else:
                inner = self._plain(child.children, images=images, permalinks=permalinks, begun=begun)
                text = f" {inner} " if child.block else _apart(child, inner, out)
            out.append(text)
            begun = begun or bool(text.strip())
        return "".join(out)


def _apart(node: Node, text: str, before: list[str]) -> str:
    """Return the text of an inline element, apart from the word before it where a style sheet sets it apart."""
    if not before or node.name not in ("a", "button", "img", "span") or not text[:1].isalnum():
        return text
    is_apart = before[-1].rstrip("*`")[-1:].isalnum() and (node.classes or node.name in ("button", "img"))
    separator = " : " if node.classes[:1] == ["classifier"] else " "
    return f"{separator}{text}" if is_apart else text


def own_anchor(node: Node) -> str:
    """Return the id that an element has, or the name of an `a`; "" if it has neither."""
    return node.get("id") or (node.get("name") if node.name == "a" else "") or ""


def code_span(text: str) -> str:
    """Return `text` as a code span, fenced by more backticks than it holds in a row."""
    text = collapse(text)
    if "`" not in text:
        return f"`{text}`" if text else ""
    fence = backtick_fence(text, 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def backtick_fence(text: str, least: int) -> str:
    """Return so many backticks that `text` holds no such run, at least `least`."""
    return "`" * max(least, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))


def is_permalink(node: Node) -> bool:
    """Return whether an element is the sign beside a heading that links to the heading itself."""
    if node.name != "a" or not {"headerlink", "hash-link"}.isdisjoint(node.classes):
        return node.name == "a"
    # Some themes make the whole heading such a link; then its words are the heading's.
    return "#" in (node.get("href") or "") and not any(c.isalnum() for c in node.text())


def is_tool(child: Child) -> bool:
    """Return whether inline content is blank or only works the page: a button, a field's label, a link to the editor.

    Beside other words it is a part of their sentence.
    """
    if isinstance(child, str):
        return child.isspace()
    is_control = child.name == "button" or (child.name == "label" and child.get("for") is not None)
    return (is_control and child.get("aria-expanded") is None) or _is_theme_link(child)


def _is_theme_link(node: Node) -> bool:
    """Return whether a link leads to the editor of a page's source, or to the page before or behind it.

    Alone in its paragraph it is part of the theme.
    """
    return node.name == "a" and (
        not _THEME_RELS.isdisjoint((node.get("rel") or "").split())
        or _EDIT_ADDRESS.search(node.get("href") or "") is not None
    )


def alternative_text(node: Node) -> str:
    return strip_invisible(collapse(node.get("alt") or ""))


def _image(node: Node) -> str:
    alt = alternative_text(node)
    return "" if not alt or is_decoration(node, alt) else alt


def is_decoration(node: Node, alt: str) -> bool:
    """Return whether an image is a badge, an icon or an emoji, or says nothing by its alternative text."""
    return _EMPTY_ALT.fullmatch(alt) is not None or _is_ornament(node)


def _is_ornament(node: Node) -> bool:
    is_icon = any(0 < node.integer(side, 0) <= _MAX_ICON_PIXELS for side in ("width", "height"))
    is_hidden = node.get("role") in ("presentation", "none") or node.get("aria-hidden") == "true"
    return is_hidden or is_icon or _is_badge(node.get("src") or "")


def _is_badge(address: str) -> bool:
    host = address.find("//")
    return host >= 0 and (_BADGE_HOST.search(address) or _BADGE_PATH.search(address, host + 2)) is not None


def _checkbox(node: Node) -> str:
    if node.get("type") != "checkbox":
        return ""
    return "[x] " if node.get("checked") is not None else "[ ] "


def _formula(node: Node) -> str:
    # MathML carries its source beside its presentation; one of them is enough.
    source = next((n for n in node.walk() if n.name == "annotation"), None)
    return f"${collapse(source.text())}$" if source else node.text()


_LEAVES: dict[str, Callable[[Node], str]] = {
    "img": _image,
    "br": lambda _: _BREAK,
    "wbr": lambda _: "",
    "hr": lambda _: " ",
    "input": _checkbox,
    "math": _formula,
    "q": lambda node: f"“{collapse(node.text())}”",
}
