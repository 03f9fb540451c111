"""Reads Markdown files without a build into the same sections and blocks as built pages.

markdown-it-py parses, its HTML goes through the HTML reader: one place decides how a table or an admonition reads. Only
plain paragraphs go past it, word for word (see `verbatim`). What a build would add (snippets, macros, generated
reference pages) isn't there, and anchors are computed, not seen; so built HTML is the better source wherever there is
one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from chapterverse.ext.sources.markdown.front_matter import FrontMatter, split_front_matter
from chapterverse.ext.sources.markdown.generator_syntax import directives_plugin, shortcodes_plugin
from chapterverse.ext.sources.markdown.mdx import to_markdown
from chapterverse.ext.sources.markdown.myst import myst_plugin
from chapterverse.ext.sources.markdown.slugs import Slugger
from chapterverse.ext.sources.markdown.verbatim import verbatim_plugin
from chapterverse.model import Section
from chapterverse.readers.html.parser import require_at_most
from chapterverse.readers.html.visible_text import collapse, strip_invisible, unescape
from chapterverse.readers.sections.html_page import read_fragment
from chapterverse.readers.sections.outline import title_from_path
from chapterverse.readers.urls import SiteGenerator

# `{#id}`, `{ #id .class }`, `{: #id}` and Docusaurus' comment form `{/* #id */}`: the last braces of a heading.
_EXPLICIT_ID = re.compile(r"\{(?:/\*|:)?(?:[^{}#]*+(?<=\s))?#([^\s{}*]++)[^{}]*+\}")
_LOOKS_LIKE_MDX = re.compile(
    r"""^(?:import\s[^\n]{1,500}\sfrom\s+['"]|[ \t]*</?[A-Z]\w*[\s/>]|[ \t]*`{3,}mdx-code-block)""", re.MULTILINE
)
#: How Docusaurus reads files: as MDX, whatever their ending is, as Markdown, or by the ending.
SYNTAXES = ("mdx", "md", "detect")
_EXPRESSION = re.compile(r'<data value="([^"]*)">')
_LANGUAGE = re.compile(r"[\s{.]*([\w+#-]*)")
_FENCE_TITLE = re.compile(r"""(?:title|filename|tab)=(?:"([^"]*)"|'([^']*)'|(\S+))|\[([^\]]{1,999})\]""")

#: A link around an image whose text holds a link has three levels; the others are for brackets that are text.
_MAX_LABELS = 8
#: Characters of a page, whose parser takes up to a hundred times as long for one as that of HTML.
_MAX_MARKDOWN_CHARS = 5_000_000
#: Opening brackets outside of code blocks: each may begin a link, whose end is searched for.
MAX_BRACKETS = 100_000

#: Text that only a build puts in: shortcodes and tags for other files, snippets, imported parts, generated references;
#: and reStructuredText in MyST, which is mostly there to generate references.
_FROM_ELSEWHERE = re.compile(
    r"""^[ \t]*(?:\{\{[<%][ \t]*(?:[\w./-]{0,80}(?:include|readfile|code-snippet)|embed)\b
    |\{%-?[ \t]*(?:include|render)\w*[ \t]
    |-{1,9}8<-|:::[ \t]+\w+(?:\.\w+)+[ \t]*$|<!--@include:|<<<[ \t]*[@./]
    |(?:`{3,}|~{3,}|:{3,})[ \t]*\{(?:(?:literal)?include|auto[a-z]\w*|eval-rst)\}
    |import[ \t]+\w+[ \t]+from[ \t]+['"][^'"\n]+\.mdx?['"])""",
    re.MULTILINE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A page read from its source; every section's anchor is computed, so `anchor_verified` is False.

    Attributes:
        title: that of the front matter, else the first heading of level 1, else one made from the
            file's name.
    """

    sections: tuple[Section, ...]
    title: str
    front_matter: FrontMatter


def read_markdown(
    text: str,
    file_path: str,
    generator: SiteGenerator = SiteGenerator.MKDOCS,
    *,
    syntax: str = "",
) -> MarkdownPage:
    """Return the page that a Markdown file will become.

    Args:
        file_path: relative to the docs root; named in errors.
        syntax: what the configuration of Docusaurus calls `markdown.format`: mdx, md, detect; "" where it is silent.

    Raises:
        UnreadablePage: its front matter is no valid YAML.
        PageTooLarge: it is beyond a bound, such as `MAX_BRACKETS`.
    """
    require_at_most(_MAX_MARKDOWN_CHARS, len(text), "characters")
    front_matter, body = split_front_matter(text, file_path)
    mdx = _is_mdx(body, file_path, generator, _stated_syntax(front_matter) or syntax)
    if mdx:
        body = to_markdown(body)
    parser = _parser(generator, mdx)
    env: dict[str, Any] = {}
    # The plugin of MyST looks at the end of the last line.
    tokens = parser.parse(f"{body}\n", env)
    _set_ids(tokens, generator)
    title = front_matter.title or _first_heading(tokens) or title_from_path(file_path)
    html = parser.renderer.render(tokens, parser.options, env)
    sections = read_fragment(html, title, env["verbatim"])
    return MarkdownPage(tuple(replace(s, anchor_verified=False) for s in sections), title, front_matter)


def needs_build(body: str) -> bool:
    """Whether a page takes text from other files when it is built."""
    return _FROM_ELSEWHERE.search(body) is not None


def _is_mdx(body: str, file_path: str, generator: SiteGenerator, syntax: str) -> bool:
    has_ending = file_path.lower().endswith(".mdx")
    if generator is SiteGenerator.DOCUSAURUS:
        return has_ending if syntax == "detect" else syntax != "md"
    # Other readers of GitHub's Markdown don't read ".md" as MDX, so such a file must look like it.
    return has_ending or (generator.is_docusaurus and _LOOKS_LIKE_MDX.search(body) is not None)


def _stated_syntax(matter: FrontMatter) -> str:
    """Return what a page of Docusaurus itself states as `mdx.format`, "" for nothing."""
    mdx = matter.values.get("mdx")
    stated = mdx.get("format") if isinstance(mdx, dict) else None
    return stated if stated in SYNTAXES else ""


@functools.cache
def _parser(generator: SiteGenerator, mdx: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    if mdx:
        parser.disable(["code", "autolink"])
    else:
        parser.use(shortcodes_plugin)
    inline = _BoundedInline()
    inline.ruler, inline.ruler2 = parser.inline.ruler, parser.inline.ruler2
    parser.inline = inline
    for plugin in (footnote_plugin, deflist_plugin, tasklists_plugin, admon_plugin, directives_plugin):
        parser.use(plugin)
    parser.use(verbatim_plugin, mdx)
    parser.core.ruler.before("inline", "explicit_ids", _take_explicit_ids)
    if generator is SiteGenerator.SPHINX and not mdx:
        parser.use(myst_plugin)
    parser.add_render_rule("fence", _render_fence)
    return parser


class _BoundedInline(ParserInline):
    """Searches for the end of no label below `_MAX_LABELS` others, and for that of so many labels at most.

    By itself the parser searches through all that a label holds, which may be labels too, a hundred levels deep: one
    megabyte of "![" would take minutes. Within our levels a bracket still takes twenty times as long as another sign.
    """

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        env["brackets"] = env.get("brackets", 0) + src.count("[")
        require_at_most(MAX_BRACKETS, env["brackets"], "opening brackets")
        return super().parse(src, md, env, tokens)

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 the parser's name
        if state.level >= _MAX_LABELS and state.pos not in state.cache:
            # As the parser itself does at its own limit.
            state.cache[state.pos] = state.posMax
        super().skipToken(state)


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield each heading's opening token and its content."""
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            yield token, tokens[i + 1]


def _take_explicit_ids(state: StateCore) -> None:
    for opening, content in _headings(state.tokens):
        text = content.content
        braces = text.rfind("{")
        explicit = _EXPLICIT_ID.fullmatch(text.rstrip(), braces) if braces >= 0 else None
        if explicit:
            opening.attrSet("id", explicit.group(1))
            # In MDX the brace is escaped, and Docusaurus reads every .md file as MDX.
            content.content = text[:braces].removesuffix("\\").rstrip()


def _set_ids(tokens: Sequence[Token], generator: SiteGenerator) -> None:
    slugger = Slugger(generator)
    if generator is SiteGenerator.MKDOCS:
        # Python-Markdown knows all explicit ids before it makes the first of its own.
        for opening, _ in _headings(tokens):
            slugger.reserve(str(opening.attrGet("id") or ""))
    for opening, content in _headings(tokens):
        explicit = opening.attrGet("id")
        if explicit:
            slugger.reserve(str(explicit))
        else:
            opening.attrSet("id", slugger.slug(_heading_text(content, images=generator.is_docusaurus)))


def _first_heading(tokens: Sequence[Token]) -> str:
    first = next((content for opening, content in _headings(tokens) if opening.tag == "h1"), None)
    return collapse(strip_invisible(_heading_text(first, images=True))) if first else ""


def _heading_text(inline: Token, *, images: bool) -> str:
    words = {"text", "text_special", "code_inline"} | ({"image"} if images else set())
    return "".join(
        child.content if child.type in words else " " if child.type in ("softbreak", "hardbreak") else ""
        for child in _with_sources(inline.children or ())
    )


def _with_sources(children: Sequence[Token]) -> Iterator[Token]:
    """Yield inline tokens with the source of an MDX expression in the place of its value: ids are made of that."""
    inside = False
    for child in children:
        source = _EXPRESSION.match(child.content) if child.type == "html_inline" else None
        if source:
            yield Token("text", "", 0, content=unescape(source.group(1)))
        inside = source is not None or (inside and child.content != "</data>")
        if not inside:
            yield child


def _render_fence(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    language = _LANGUAGE.match(token.info)
    title = _FENCE_TITLE.search(token.info)
    named = next((group for group in title.groups() if group), "") if title else ""
    caption = f'<span class="filename">{escapeHtml(named)}</span>' if named else ""
    name = language.group(1) if language else ""
    code = f'<pre><code class="language-{name}">{escapeHtml(token.content)}</code></pre>'
    return f'<div class="highlight">{caption}{code}</div>\n'
