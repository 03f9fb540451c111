"""Parses block syntax that generators add to Markdown and markdown-it-py doesn't know.

`=== "Label"` with an indented body (pymdownx tabs), and `::: warning Title` … `:::` (VitePress, Docusaurus, MyST). Both
become the HTML that the generator itself would write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock

_TAB = re.compile(r'===[!+]*\s+"(.*)"\s*$')
_CONTAINER = re.compile(r"(:{3,})\s*\{?([A-Za-z][\w-]*)\}?(?:\s*\[(.*)\]\s*|\s+(.*))?$")
_CONTAINER_END = re.compile(r"(:{3,})\s*$")
_TAB_INDENT = 4

#: Where block syntax may begin right behind a line of another block.
INTERRUPTING: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}


def directives_plugin(md: MarkdownIt) -> None:
    """Teach a parser both kinds of blocks."""
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
    push_html(state, f'<div class="tabbed-set"><label>{label}</label><div class="tabbed-content">\n')
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
