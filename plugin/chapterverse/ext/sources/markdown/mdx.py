"""Converts MDX to Markdown with a few HTML tags, for the Markdown reader.

Only the build knows the look of a component. Those that every generator has (tabs, admonitions, details, code blocks)
become the HTML that the reader knows. Any other one becomes an untitled box, under the title that its attributes carry,
so that content that an author put together stays together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from chapterverse.ext.sources.markdown.mdx_tokenizer import Code, Expression, Tag, Token, plain_value, tokenize
from chapterverse.readers.html.dom import BLOCKS
from chapterverse.readers.sections.containers import ADMONITIONS, fence

#: Elements that are dropped with all that is in them.
_DROPPED = frozenset("head Head script style svg iframe template noscript textarea title object canvas".split())
_TABS = frozenset(("Tabs", "CodeTabs", "TabGroup", "TabList"))
_TAB = frozenset(("TabItem", "Tab"))
_DETAILS = frozenset(("details", "Details", "Accordion", "Collapse", "Collapsible", "Expandable"))
_ADMONITIONS = frozenset(("Admonition", "Callout", "Aside", "Alert"))
_CODE_BLOCKS = frozenset(("CodeBlock", "Code"))
#: HTML elements that are boxes and nothing more.
_BOXES = frozenset("article aside center div fieldset figure footer header main section".split())
#: What has lines of its own where a line starts with it.
_BLOCK_NAMES = _TABS | _TAB | _DETAILS | _ADMONITIONS | (BLOCKS - {"hr", "pre"})
#: Attributes of components whose names suggest that readers see them.
_TITLES = ("title", "label", "heading", "header", "caption", "question")
_TEXTS = ("description", "text", "summary", "alt", "content")
_HTML_ATTRIBUTES = tuple("id href src alt start value colspan rowspan colSpan rowSpan type checked".split())

_HTML_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
_LINE_END = re.compile(r"[ \t]*+(?:\n|\Z)")
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~&])")
_BAR = re.compile(r"(?<!\\)\|")
_TAGS = re.compile(r"<[^<>]*>|[{}]")
_COMMENT = re.compile(r"(?>(?:\s++|/\*.*?\*/|//[^\n]*+)*)\Z", re.DOTALL)
_PAIR = re.compile(r"""(?<![\w$])([\w$]++)['"]?\s*+:\s*+(?:"([^"\\]*)"|'([^'\\]*)')""")
_HEADING = re.compile(r"#{1,6}[ \t]")

_OPEN_BOX = '<div class="custom-block">'


def to_markdown(text: str) -> str:
    """Return the Markdown that MDX, without its front matter, reads as. Never fails; takes time linear in its length.

    Imports, exports, comments and expressions that aren't a plain string or constant go; code stays as it is; tags that
    are never closed are text. In headings `<data value="name">` keeps an expression's source, which ids are made from.
    """
    return _Writer(text.replace("\r\n", "\n").replace("\r", "\n")).run()


class _Writer:
    """Writes the tokens of a file as Markdown.

    Attributes:
        partners: index of a tag's other half, by the index of the tag.
        at_line_ends: indexes of tags that end their line.
        closings: HTML behind each open block, by the index of the tag that closes it.
        labels: labels that each open set of tabs gives its tabs, by their values.
        line: the beginning of the line that is being written.
        open_code: number of open `code` elements.
    """

    def __init__(self, text: str) -> None:
        self.tokens, self.constants = tokenize(text)
        self.partners = _partners(self.tokens)
        self.at_line_ends = _at_line_ends(self.tokens)
        self.closings: dict[int, str] = {}
        self.labels: list[Mapping[str, str]] = []
        self.out: list[str] = []
        self.line = ""
        self.open_code = 0

    def run(self) -> str:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if isinstance(token, Tag):
                at = self._tag(token, at)
                continue
            if isinstance(token, Expression):
                self._expression(token)
            else:
                self._write(token.raw if isinstance(token, Code) else self._text(token))
            at += 1
        return "".join(self.out)

    def _write(self, text: str) -> None:
        self.out.append(text)
        _, newline, last = text.rpartition("\n")
        # All questions about a line are about its start.
        self.line = last[:80] if newline else (self.line + text)[:80]

    def _text(self, text: str) -> str:
        # Before MDX 2 a bar in <code> ended no table cell, and such tables are still being written.
        if self.open_code and self.line.lstrip().startswith("|"):
            line, newline, rest = text.partition("\n")
            return _BAR.sub(r"\\|", line) + newline + rest
        return text

    def _block(self, html: str) -> None:
        """Write HTML between blank lines, indented like its line."""
        indent = self.line[: len(self.line) - len(self.line.lstrip(" \t"))]
        self._write(f"{html}\n\n{indent}" if not self.line.strip() else f"\n\n{indent}{html}\n\n{indent}")

    def _starts_line(self) -> bool:
        return not self.line.strip()

    def _expression(self, expression: Expression) -> None:
        markdown = _MARKS.sub(r"\\\1", plain_value(expression.source, self.constants) or "")
        if _HEADING.match(self.line.lstrip()) and not _COMMENT.match(expression.source):
            markdown = f'<data value="{escape(expression.source)}">{markdown}</data>'
        self._write(markdown)

    def _tag(self, tag: Tag, at: int) -> int:
        """Write one tag, or the whole element where it is taken whole, and return which token comes next."""
        partner = self.partners.get(at)
        if tag.closing or not (tag.empty or partner):
            self._close(tag, at)
        elif tag.name in _DROPPED or self._is_label(tag) or (tag.name in _CODE_BLOCKS and self._code(tag, at, partner)):
            return (partner or at) + 1
        elif self._starts_line() and self._is_block(tag, at):
            self._open_block(tag, partner)
        else:
            self.open_code += tag.name == "code"
            self._write(self._inline(tag))
        return at + 1

    def _is_label(self, tag: Tag) -> bool:
        """Return whether a component is an icon, or a badge beside the words of a heading."""
        return tag.name == "Icon" or (tag.name == "Badge" and _HEADING.match(self.line.lstrip()) is not None)

    def _close(self, tag: Tag, at: int) -> None:
        if at in self.closings:
            if tag.name in _TABS:
                self.labels.pop()
            self._block(self.closings[at])
        elif at not in self.partners and tag.name not in BLOCKS:
            self._write(tag.raw.replace("<", "&lt;"))
        elif _is_html(tag) and tag.closing:
            self.open_code -= tag.name == "code"
            self._write(f"</{tag.name}>")

    def _is_block(self, tag: Tag, at: int) -> bool:
        return tag.name in _BLOCK_NAMES or (at in self.at_line_ends and tag.name != "" and not _is_html(tag))

    def _open_block(self, tag: Tag, partner: int | None) -> None:
        opening, closing = self._block_html(tag)
        self._block(opening)
        if partner is None:
            self._block(closing)
        else:
            self.closings[partner] = closing

    def _block_html(self, tag: Tag) -> tuple[str, str]:
        """Return the HTML before and behind the content of a component that is a block."""
        name = tag.name
        if name in _TABS:
            if not tag.empty:
                self.labels.append(_labels(tag.attributes.get("values", "")))
            return f'{_OPEN_BOX}<div class="tabbed-set">', "</div></div>"
        if name in _TAB:
            return f'<div role="tab">{escape(self._tab_label(tag))}</div><div class="tabbed-block">', "</div>"
        if name in _DETAILS:
            summary = self._first_text(tag, ("summary", *_TITLES))
            return f"<details>{_element('summary', summary)}", "</details>"
        if _is_html(tag) and name not in _BOXES:
            return self._inline(tag), f"</{name}>"
        kind = self._kind(tag)
        title = "" if _is_html(tag) else self._first_text(tag, _TITLES)
        texts = [] if _is_html(tag) else [_element("p", self._first_text(tag, (key,))) for key in _TEXTS]
        head = f'<p class="custom-block-title">{escape(title)}</p>' if title else ""
        return (f'<div class="custom-block {kind}">' if kind else _OPEN_BOX) + head + "".join(texts), "</div>"

    def _kind(self, tag: Tag) -> str:
        if tag.name in _ADMONITIONS:
            return escape(self._first_text(tag, ("type", "kind", "variant")).lower())
        return tag.name.lower() if tag.name.lower() in ADMONITIONS and not _is_html(tag) else ""

    def _tab_label(self, tag: Tag) -> str:
        value = self._first_text(tag, ("value",))
        outer = self.labels[-1].get(value, "") if self.labels else ""
        return self._first_text(tag, ("label", "title", "name")) or outer or value

    def _first_text(self, tag: Tag, names: tuple[str, ...]) -> str:
        """Return the first of the attributes that has a text to show."""
        return next(filter(None, (self._attribute_text(tag.attributes.get(name, "")) for name in names)), "")

    def _attribute_text(self, value: str) -> str:
        if not value.startswith("{"):
            return " ".join(value.split())
        source = value[1:-1].strip()
        if source.startswith("<"):
            return " ".join(_TAGS.sub(" ", source).split())
        return " ".join((plain_value(source, self.constants) or "").split())

    def _code(self, tag: Tag, at: int, partner: int | None) -> bool:
        """Write a component around one string, or with a `code` attribute, as a fence."""
        if not self._starts_line():
            return False
        inside = [t for t in self.tokens[at + 1 : min(partner or at, at + 5)] if not isinstance(t, str) or t.strip()]
        source = tag.attributes.get("code", "").removeprefix("{").removesuffix("}").strip()
        if partner and partner - at <= 5 and len(inside) == 1 and isinstance(inside[0], Expression):
            source = inside[0].source
        code = plain_value(source, self.constants)
        if code is None:
            return False
        title = self._first_text(tag, ("title",)).replace('"', "'")
        lang = self._first_text(tag, ("language", "lang")) or ("text" if title else "")
        self._block(fence(code.strip("\n"), lang, title).text.replace("\n", f"\n{self.line}"))
        return True

    def _inline(self, tag: Tag) -> str:
        """Return a tag within a line; of a component only the texts in its attributes stay."""
        if not _is_html(tag):
            if "alt" in tag.attributes:
                return f'<img alt="{escape(self._first_text(tag, ("alt",)))}">'
            return _MARKS.sub(r"\\\1", self._first_text(tag, (*_TITLES, *_TEXTS)))
        attributes = (
            f' {name}="{escape(self._attribute_text(tag.attributes[name]))}"'
            for name in _HTML_ATTRIBUTES
            if name in tag.attributes
        )
        return f"<{tag.name}{''.join(attributes)}>"


def _is_html(tag: Tag) -> bool:
    return _HTML_NAME.match(tag.name) is not None


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>" if text else ""


def _labels(values: str) -> dict[str, str]:
    """Return the labels of tabs by their values: `values={[{label: 'Apple', value: 'apple'}]}`."""
    labels: dict[str, str] = {}
    tab: dict[str, str] = {}
    for key, double, single in _PAIR.findall(values):
        tab[key] = double or single
        if tab.get("label") and tab.get("value"):
            labels[tab["value"]] = tab["label"]
            tab = {}
    return labels


def _partners(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the positions of tags that belong together, each by the other's; the last one opened is closed first."""
    partners: dict[int, int] = {}
    open_tags: list[tuple[str, int]] = []
    opened: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if not isinstance(token, Tag) or token.empty:
            continue
        if not token.closing:
            open_tags.append((token.name, at))
            opened[token.name] = opened.get(token.name, 0) + 1
        elif opened.get(token.name):
            name, start = "", -1
            while name != token.name or start < 0:
                name, start = open_tags.pop()
                opened[name] -= 1
            partners[start], partners[at] = at, start
    return partners


def _at_line_ends(tokens: Sequence[Token]) -> set[int]:
    """Return the positions of tags that only tags and comments follow on their line."""
    positions: set[int] = set()
    ends = True
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if isinstance(token, str):
            ends = _LINE_END.match(token) is not None and ("\n" in token or ends)
        elif isinstance(token, Tag):
            if ends:
                positions.add(at)
        else:
            ends = ends and isinstance(token, Expression) and _COMMENT.match(token.source) is not None
    return positions
