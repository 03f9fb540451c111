"""Parses block syntax that generators add to Markdown and markdown-it-py doesn't know.

`=== "Label"` with an indented body (pymdownx tabs), and `::: warning Title` … `:::` (VitePress, Docusaurus, MyST). Both
become the HTML that the generator itself would write.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock

_TAB = re.compile(r'===[!+]*\s+"(.*)"\s*$')
_CONTAINER = re.compile(r"(:{3,})\s*\{?([A-Za-z][\w-]*)\}?(?:\s*\[(.*)\]\s*|\s+(.*))?$")
_CONTAINER_END = re.compile(r"(:{3,})\s*$")
_TAB_INDENT = 4


def directives_plugin(md: MarkdownIt) -> None:
    """Teach a parser both kinds of blocks."""
    alt: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    md.block.ruler.before("fence", "content_tab", _tab, alt)
    md.block.ruler.before("fence", "colon_container", _container, alt)


def _tab(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    match = _TAB.match(_line(state, start))
    if not match or state.is_code_block(start):
        return False
    if silent:
        return True
    indent = state.sCount[start] + _TAB_INDENT
    after = start + 1
    while after < end and (state.isEmpty(after) or state.sCount[after] >= indent):
        after += 1
    _html(state, f'<div class="tabbed-set"><label>{escapeHtml(match.group(1))}</label><div class="tabbed-content">\n')
    _body(state, start + 1, after, indent)
    _html(state, "</div></div>\n")
    state.line = after
    return True


def _container(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    match = _CONTAINER.match(_line(state, start))
    if not match or state.is_code_block(start):
        return False
    colons, kind, *titles = match.groups()
    # mkdocstrings writes "::: package.name" with no end; such a line is text.
    after = _end_of_container(state, start, end, len(colons))
    if after is None:
        return False
    if silent:
        return True
    _html(state, f'<div class="custom-block {escapeHtml(kind.lower())}">\n')
    title = next((t.strip() for t in titles if t), "")
    if title:
        _title(state, title)
    _body(state, start + 1, after, state.sCount[start])
    _html(state, "</div>\n")
    state.line = after + 1
    return True


def _end_of_container(state: StateBlock, start: int, end: int, colons: int) -> int | None:
    # Where so many colons have no end below one line, they have none further down. To look again would be quadratic.
    hopeless = state.env.setdefault("unclosed_containers", {})
    if colons >= hopeless.get(end, colons + 1):
        return None
    for line in range(start + 1, end):
        match = _CONTAINER_END.match(_line(state, line))
        if match and len(match.group(1)) >= colons:
            return line
    hopeless[end] = colons
    return None


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _html(state: StateBlock, html: str) -> None:
    state.push("html_block", "", 0).content = html


def _title(state: StateBlock, title: str) -> None:
    _html(state, '<p class="custom-block-title">')
    inline = state.push("inline", "", 0)
    inline.content, inline.children = title, []
    _html(state, "</p>\n")


def _body(state: StateBlock, start: int, end: int, indent: int) -> None:
    before = state.blkIndent, state.lineMax, state.parentType
    state.blkIndent, state.lineMax, state.parentType = indent, end, "directive"
    state.md.block.tokenize(state, start, end)
    state.blkIndent, state.lineMax, state.parentType = before
