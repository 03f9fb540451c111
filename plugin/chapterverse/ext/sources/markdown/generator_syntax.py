"""Teaches the Markdown parser block and inline syntax of generators.

Tabs (`=== "Label"` and an indented body) and containers (`::: warning Title` … `:::`) become the HTML that the
generator itself would write. The shortcodes of Hugo and the tags of Liquid go, as only a build could
render them: of `{{< note >}}` and `{% include x %}` the text between two of them stays, and a shortcode around code
becomes a fence. The parser asks these rules outside of code only, so that code about templates stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

_TAB = re.compile(r'===[!+]*\s+"(.*)"\s*$')
_CONTAINER = re.compile(r"(:{3,})\s*\{?([A-Za-z][\w-]*)\}?(?:\s*\[(.*)\]\s*|\s+(.*))?$")
_CONTAINER_END = re.compile(r"(:{3,})\s*$")
_TAB_INDENT = 4

#: Where block syntax may begin right behind a line of another block.
INTERRUPTING: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}

#: Characters and lines that one shortcode may have; a longer one is text, so that the search stays linear.
_MAX_CHARS = 1000
_MAX_LINES = 30

_OPENING = re.compile(r"\{\{[<%](?!/\*)|\{%")
_CLOSING = {"{{<": ">}}", "{{%": "%}}", "{%": "%}"}
# Variables of Jekyll, attribute lists of kramdown, and those of Python-Markdown right behind an element.
_BRACES = re.compile(
    r"\{\{-?\s*(?:site|page|layout|include)\.[^{}\n]{0,200}\}\} | \{:[^{}\n]{0,200}\}"
    r" | (?<=[)*_`])\{\s*[.#][\w-][^{}\n]{0,200}\}",
    re.VERBOSE,
)
_LINE = re.compile(
    r"(?:\{\{[<%]-?\s*|\{%-?\s*)(?!/\*)([\w/.-]++)(?:\s++([\w+#-]++))?[^{}]*+\}\}?\s*\Z|\{:[^{}]*+\}\s*\Z"
)
# Lines where a build would put a table of contents, a piece of another file, or the value of a variable.
_PLACEHOLDER = re.compile(
    r"(?:\[TOC\]|\[\[_?toc_?\]\]|-+8<-+[ \t]+\"[^\"]*\"|\{\{-?\s*[\w.][^{}]*+\}\})\s*\Z", re.IGNORECASE
)
_ICON = re.compile(r"(?<![\w:]):(?:material|fontawesome|octicons|simple)-[a-z0-9-]+:(?!\w)")
_ADDRESS = re.compile(r"\]\(\s*<?\{\{[<%][^{}()]{0,200}\}\}[^()<>\s]{0,200}>?\s*\)")
#: Hugo's form of a shortcode that has no content.
_CLOSED = re.compile(r"/\s*[>%]\}\}\s*\Z")
_CODE = re.compile(r"highlight\Z|code")


def directives_plugin(md: MarkdownIt) -> None:
    """Teach a parser tabs and containers."""
    md.block.ruler.before("fence", "content_tab", _tab, INTERRUPTING)
    md.block.ruler.before("fence", "colon_container", _container, INTERRUPTING)


def _tab(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    match = _TAB.match(line_text(state, start))
    if not match or state.is_code_block(start):
        return False
    if silent:
        return True
    indent = state.sCount[start] + _TAB_INDENT
    after = start + 1
    while after < end and (state.isEmpty(after) or state.sCount[after] >= indent):
        after += 1
    label = escapeHtml(match.group(1))
    push_html(state, f'<div class="tabbed-set"><div role="tab">{label}</div><div class="tabbed-block">\n')
    parse_body(state, start + 1, after, indent)
    push_html(state, "</div></div>\n")
    state.line = after
    return True


def _container(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    match = _CONTAINER.match(line_text(state, start))
    if not match or state.is_code_block(start):
        return False
    colons, kind, *titles = match.groups()
    # mkdocstrings writes "::: package.name" with no end; such a line is text.
    after = _end_of_container(state, start, end, len(colons))
    if after is None:
        return False
    if silent:
        return True
    body = partial(parse_body, state, start + 1, after, state.sCount[start])
    push_box(state, kind.lower(), next((t.strip() for t in titles if t), ""), body)
    state.line = after + 1
    return True


def _end_of_container(state: StateBlock, start: int, end: int, colons: int) -> int | None:
    # Where so many colons have no end below one line, they have none further down. To look again would be quadratic.
    hopeless = state.env.setdefault("unclosed_containers", {})
    if colons >= hopeless.get(end, colons + 1):
        return None
    for line in range(start + 1, end):
        match = _CONTAINER_END.match(line_text(state, line))
        if match and len(match.group(1)) >= colons:
            return line
    hopeless[end] = colons
    return None


def line_text(state: StateBlock, line: int) -> str:
    """Return a line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def push_html(state: StateBlock, html: str) -> None:
    """Append raw HTML."""
    state.push("html_block", "", 0).content = html


def push_text(state: StateBlock, text: str) -> None:
    """Append inline Markdown."""
    inline = state.push("inline", "", 0)
    inline.content, inline.children = text, []


def push_box(state: StateBlock, kind: str, title: str, push_body: Callable[[], None]) -> None:
    """Append a container around what `push_body` appends; `title` is inline Markdown, "" for none."""
    push_html(state, f'<div class="custom-block {escapeHtml(kind)}">\n')
    if title:
        push_html(state, '<p class="custom-block-title">')
        push_text(state, title)
        push_html(state, "</p>\n")
    push_body()
    push_html(state, "</div>\n")


def parse_body(state: StateBlock, start: int, end: int, indent: int) -> None:
    """Append what the lines from `start` to `end` hold, without `indent` columns of each, or as many as all have."""
    # The parser would stop at a line with less.
    indent = min((indent, *(state.sCount[line] for line in range(start, end) if not state.isEmpty(line))))
    before = state.blkIndent, state.lineMax, state.parentType
    state.blkIndent, state.lineMax, state.parentType = indent, end, "directive"
    # Containers count among the levels of which the parser has a limit.
    state.level += 1
    state.md.block.tokenize(state, start, end)
    state.level -= 1
    state.blkIndent, state.lineMax, state.parentType = before


def shortcodes_plugin(md: MarkdownIt) -> None:
    """Teach a parser to leave shortcodes, Liquid tags and the names of icons out."""
    md.block.ruler.before("fence", "shortcode_line", _line, INTERRUPTING)
    md.core.ruler.before("inline", "shortcode_addresses", _drop_addresses)
    md.inline.ruler.before("escape", "shortcode", _shortcode)
    md.inline.ruler.before("escape", "icon", _icon)


def _line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a line that holds a placeholder or one shortcode: drop it, or make a fence of it and the code behind it."""
    line = line_text(state, start)
    if line.startswith(("[", "-", "{")) and _PLACEHOLDER.match(line) and not state.is_code_block(start):
        if not silent:
            state.line = start + 1
        return True
    last = _last_line(state, line, start, end) if line.startswith("{") and not state.is_code_block(start) else None
    shortcode = _LINE.match(line if last == start else f"{line} }}}}") if last is not None else None
    if last is None or not shortcode:
        return False
    if silent:
        return True
    name = shortcode.group(1) or ""
    state.line = last + 1
    closes_itself = _CLOSED.search(line_text(state, last)) is not None
    after = _end_of_code(state, name, start, end) if _CODE.match(name) and not closes_itself else None
    if after is not None:
        fence = state.push("fence", "code", 0)
        fence.info = (shortcode.group(2) or "") if name == "highlight" else ""
        fence.content = state.getLines(start + 1, after, state.blkIndent, True)
        fence.map = [start, after + 1]
        state.line = after + 1
    return True


def _last_line(state: StateBlock, line: str, start: int, end: int) -> int | None:
    """Return the last line of a shortcode that ends its line; None if none does."""
    opening = _OPENING.match(line)
    if not opening:
        return start
    for at in range(start, min(end, start + _MAX_LINES)):
        _, closing, rest = line_text(state, at).partition(_CLOSING[opening.group()])
        if closing:
            return None if rest.strip() else at
    return None


def _end_of_code(state: StateBlock, name: str, start: int, end: int) -> int | None:
    # A name that has no end tag below one line has none further down either. To look again would be quadratic.
    unclosed = state.env.setdefault("unclosed_shortcodes", set())
    if (name, end) in unclosed:
        return None
    closing = re.compile(r"(?:\{\{[<%]\s*/|\{%-?\s*end)" + re.escape(name) + r"\b")
    for line in range(start + 1, end):
        if closing.match(line_text(state, line)):
            return line
    unclosed.add((name, end))
    return None


def _drop_addresses(state: StateCore) -> None:
    """Leave links without the addresses that shortcodes would make."""
    for token in state.tokens:
        if token.type == "inline" and "{{" in token.content:
            token.content = _ADDRESS.sub("]()", token.content)


def _shortcode(state: StateInline, silent: bool) -> bool:
    opening = _OPENING.match(state.src, state.pos)
    if opening:
        closing = _CLOSING[opening.group()]
        at = state.src.find(closing, opening.end(), opening.end() + _MAX_CHARS)
        return at >= 0 and _drop(state, at + len(closing), silent)
    braces = _BRACES.match(state.src, state.pos) if state.src.startswith("{", state.pos) else None
    return braces is not None and _drop(state, braces.end(), silent)


def _icon(state: StateInline, silent: bool) -> bool:
    icon = _ICON.match(state.src, state.pos) if state.src.startswith(":", state.pos) else None
    return icon is not None and _drop(state, icon.end(), silent)


def _drop(state: StateInline, end: int, silent: bool) -> bool:
    if not silent:
        # Of the spaces on both sides one is enough.
        if state.src.startswith(" ", end) and (not state.pos or state.src[state.pos - 1].isspace()):
            end += 1
        # A verbatim paragraph is made of its source, so it has to know where something went.
        state.push("text_special", "", 0).meta["span"] = (state.pos, end)
    state.pos = end
    return True
