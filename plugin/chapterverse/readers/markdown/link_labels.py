"""Bounds how deep the labels of links and images are searched in each other, and how many are.

The parser searches for the end of a label through all that the label holds, which may be labels too. By itself it goes
a hundred levels deep, each through that many brackets again: one megabyte of "![" would take minutes. Within our levels
a bracket still takes twenty times as long as any other sign, so a page may hold only so many of
them outside of code blocks.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from chapterverse.readers.page_bounds import require_brackets

#: A link around an image whose text holds a link has three levels; the others are for brackets that are text.
_MAX_LEVEL = 8


def labels_plugin(md: MarkdownIt) -> None:
    """Teach a parser to search for no label below `_MAX_LEVEL` others."""
    inline = _BoundedInline()
    inline.ruler, inline.ruler2 = md.inline.ruler, md.inline.ruler2
    md.inline = inline


class _BoundedInline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        env["brackets"] = env.get("brackets", 0) + src.count("[")
        require_brackets(env["brackets"])
        return super().parse(src, md, env, tokens)

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 the parser's name
        known = state.cache.get(state.pos)
        if known is not None:
            state.pos = known
        elif state.level >= _MAX_LEVEL:
            # As the parser itself does at its own limit.
            state.cache[state.pos] = state.posMax
            state.pos = state.posMax
        else:
            super().skipToken(state)
