"""Keeps paragraphs and list items as they are written, so that a chunk's lines are lines of the file.

A quote can be found again in its source, and code-like signs (`_x_`, `*args`) stay what they were. Only a paragraph of
plain Markdown is kept so; one that holds anything whose source isn't its text (HTML, images, footnotes, task boxes)
is read as a built page would be, line by line. In both, escapes and character references are resolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, entity, escape
from markdown_it.token import Token

from chapterverse.readers.html.visible_text import strip_invisible
from chapterverse.readers.sections.containers import LIST_MARKER
from chapterverse.readers.sections.inline import VERBATIM

_PLAIN = frozenset(
    "text text_special softbreak hardbreak code_inline link_open link_close em_open em_close strong_open strong_close"
    " s_open s_close".split()
)
# Without its indentation such a line would begin a block of another kind.
_STARTS_BLOCK = re.compile(r"(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:\s|\Z)|>|`{3}|~{3}|([-*_])(?>(?:\s*+\1){2,})\s*+\Z")
_SPACES = re.compile(" {2,}")
_MAX_SPACES = 4

_Rule = Callable[[StateInline, bool], bool]


def verbatim_plugin(md: MarkdownIt, mdx: bool = False) -> None:
    """Teach a parser to keep plain paragraphs as written, in the list `verbatim` of its environment.

    Args:
        mdx: expressions were taken out of the text, so that two spaces may stand where one was on either side.
    """
    for name, rule in (("escape", escape), ("entity", entity)):
        md.inline.ruler.at(name, _locate(rule))
    # Behind it resolved signs are part of the text around them.
    md.core.ruler.before("text_join", "verbatim", partial(_keep, single_spaces=mdx))


def _locate(rule: _Rule) -> _Rule:
    """Return an inline rule whose tokens hold their span in the source."""

    def located(state: StateInline, silent: bool) -> bool:
        start = state.pos
        matches = rule(state, silent)
        if matches and not silent:
            state.tokens[-1].meta["span"] = (start, state.pos)
        return matches

    return located


def _keep(state: StateCore, single_spaces: bool) -> None:
    verbatim: list[str] = state.env.setdefault("verbatim", [])
    for opening, inline in pairwise(state.tokens):
        if opening.type == "paragraph_open" and inline.children is not None:
            _keep_paragraph(inline, inline.children, verbatim, single_spaces)
    source = state.src.split("\n")
    for item, _, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if item.type == "list_item_open":
            item.attrSet(LIST_MARKER, item.markup + " " * _spaces(item, inline, source))


def _spaces(item: Token, inline: Token, source: Sequence[str]) -> int:
    """Return the number of spaces between the marker of a list item and its text, 1 if there is none."""
    line = source[item.map[0]].rstrip() if item.map else ""
    before = line.removesuffix(inline.content.partition("\n")[0].rstrip())
    spaces = len(before) - len(before.rstrip(" "))
    return spaces if 0 < spaces <= _MAX_SPACES else 1


def _keep_paragraph(inline: Token, children: Sequence[Token], verbatim: list[str], single_spaces: bool) -> None:
    if all(child.type in _PLAIN for child in children):
        start = Token("html_inline", "", 0, content=f'<{VERBATIM} n="{len(verbatim)}">')
        inline.children = [start, *children, Token("html_inline", "", 0, content=f"</{VERBATIM}>")]
        text = _verbatim(inline.content, children)
        verbatim.append(_SPACES.sub(" ", text) if single_spaces else text)
    for child in children:
        if child.type == "softbreak":
            child.type, child.tag = "hardbreak", "br"


def _verbatim(source: str, children: Iterable[Token]) -> str:
    """Return the lines of a paragraph without their indentation, unchanged but for resolved escapes."""
    out: list[str] = []
    at = 0
    for child in children:
        if "span" in child.meta:
            start, end = child.meta["span"]
            markup = "\n" if child.type == "hardbreak" else child.meta.get("verbatim", child.content)
            out += source[at:start], " " if child.content.isspace() else markup
            at = end
    out.append(source[at:])
    lines: list[str] = []
    for line in "".join(out).split("\n"):
        line = strip_invisible(line).strip()
        if lines and _STARTS_BLOCK.match(line):
            lines[-1] += f" {line}"
        elif line:
            lines.append(line)
    return "\n".join(lines)
