"""Reads MyST, the Markdown of Sphinx: its roles, directives, targets, comments and breaks, as a build shows them.

A directive is a fence, ```{name} argument, or one of tildes or colons. A box or another container holds Markdown. What
shows nothing, or only a build can show, is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from mdit_py_plugins.myst_blocks import myst_block_plugin

from chapterverse.readers.markdown.directives import INTERRUPTING, line_text, parse_body, push_box, push_html, push_text
from chapterverse.readers.markdown.myst_roles import roles_plugin
from chapterverse.readers.markdown.slugs import SiteGenerator, slugify

_OPENING = re.compile(r"(`{3,}|~{3,}|:{3,})[ \t]*\{([^\s{}`]+)\}[ \t]*(.*)")
_CLOSING = re.compile(r"(`{3,}|~{3,}|:{3,})[ \t]*\Z")
_OPTION = re.compile(r":([\w-]+):(?:\s|\Z)")
_MORE_OPTIONS = re.compile(r":(?!:)")
_YAML_BORDER = re.compile(r"-{3,}\s*\Z")
_CARD_BORDER = re.compile(r"\^{3,}\s*\Z")
_CLASS = re.compile(r"[A-Za-z][\w-]*")
# Conditions that hold in a build for browsers; any other tag is one that a build may be given.
_IN_PAGES = re.compile(r"\s*(?:(?:builder_|format_)?(?:dir|single)?html|not (?:latex|text|man|epub))\s*")
# Tags of a notebook's cell that take its code out of the page.
_REMOVED_CELL = re.compile(r"\bremove-(?:cell|input)\b")

#: Directives in each other; deeper ones are code, so that the work stays linear.
_MAX_DEPTH = 20
_DEPTH = "directives"


@dataclass(frozen=True, slots=True)
class _Directive:
    """A directive and its lines.

    Attributes:
        name: in lower case, without its domain.
        argument: what follows the name.
        options: the names of its option lines.
        start: its first line.
        body: the first line below its options.
        end: the line behind its body.
        in_colons: whether its fence is one of colons, which hold Markdown.
    """

    name: str
    argument: str
    options: frozenset[str]
    start: int
    body: int
    end: int
    in_colons: bool


_Renderer = Callable[[StateBlock, _Directive], None]


def myst_plugin(md: MarkdownIt) -> None:
    """Teach MyST to a parser that has `directives_plugin`. A text must end with a newline, or its comments may fail."""
    md.block.ruler.before("colon_container", "myst_directive", _directive, INTERRUPTING)
    md.block.ruler.before("fence", "myst_card_border", _card_border, INTERRUPTING)
    md.use(myst_block_plugin)
    md.core.ruler.before("inline", "myst_targets", _take_targets)
    md.use(roles_plugin)


def _take_targets(state: StateCore) -> None:
    """Leave out what shows nothing; a target before a heading is its id."""
    tokens = []
    target = ""
    for token in state.tokens:
        if token.type == "myst_target":
            target = token.content
        elif token.type not in ("myst_line_comment", "myst_block_break"):
            if target and token.type == "heading_open":
                token.attrSet("id", slugify(target, SiteGenerator.SPHINX))
            target = ""
            tokens.append(token)
    state.tokens[:] = tokens


def _card_border(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """Drop the line between the header and the body of a card."""
    if not state.env.get(_DEPTH) or state.is_code_block(start) or not _CARD_BORDER.match(line_text(state, start)):
        return False
    if not silent:
        state.line = start + 1
    return True


def _directive(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    opening = _OPENING.match(line_text(state, start))
    depth = state.env.get(_DEPTH, 0)
    if not opening or state.is_code_block(start) or depth >= _MAX_DEPTH:
        return False
    fence, name, argument = opening.groups()
    # Such a line is code in a paragraph.
    if fence[0] == "`" and "`" in argument:
        return False
    if silent:
        return True
    end, after = _end_of_fence(state, fence, start, end)
    body, options = _options(state, start + 1, end)
    name = name.lower().rpartition(":")[2]
    directive = _Directive(name, argument.rstrip(), options, start, body, end, fence[0] == ":")
    state.env[_DEPTH] = depth + 1
    _renderer(directive)(state, directive)
    state.env[_DEPTH] = depth
    state.line = after
    return True


def _end_of_fence(state: StateBlock, fence: str, start: int, end: int) -> tuple[int, int]:
    """Return the line behind the body of a fence, and the one behind the fence. It ends with what holds it."""
    for line in range(start + 1, end):
        if state.isEmpty(line):
            continue
        if state.sCount[line] < state.blkIndent:
            return line, line
        closing = None if state.is_code_block(line) else _CLOSING.match(line_text(state, line))
        if closing and closing.group(1).startswith(fence):
            return line, line + 1
    return end, end


def _options(state: StateBlock, start: int, end: int) -> tuple[int, frozenset[str]]:
    """Return the first line below the options of a directive, and their names, which a block of YAML hides."""
    if start < end and _YAML_BORDER.match(line_text(state, start)):
        closing = (line for line in range(start + 1, end) if _YAML_BORDER.match(line_text(state, line)))
        return next(closing, start - 1) + 1, frozenset()
    line = start
    while line < end and state.isEmpty(line):
        line += 1
    if line == end or not _OPTION.match(line_text(state, line)):
        return start, frozenset()
    names = []
    while line < end and _MORE_OPTIONS.match(text := line_text(state, line)):
        option = _OPTION.match(text)
        names += [option.group(1)] if option else []
        line += 1
    return line, frozenset(names)


# Renderers: each appends what a directive shows


def _drop(_state: StateBlock, _directive: _Directive) -> None:
    """Show nothing: only a build knows what."""


def _body(state: StateBlock, directive: _Directive) -> None:
    parse_body(state, directive.body, directive.end, state.sCount[directive.start])


def _body_from(state: StateBlock, directive: _Directive, first: str) -> None:
    """Parse a body that begins with `first`, the end of the directive's own line."""
    start = directive.start
    if not first:
        _body(state, directive)
        return
    before = state.bMarks[start], state.tShift[start]
    state.bMarks[start], state.tShift[start] = state.src.rindex(first, *_span(state, start)), 0
    if directive.body == start + 1:
        parse_body(state, start, directive.end, state.sCount[start])
    else:
        parse_body(state, start, start + 1, state.sCount[start])
        _body(state, directive)
    state.bMarks[start], state.tShift[start] = before


def _span(state: StateBlock, line: int) -> tuple[int, int]:
    return state.bMarks[line], state.eMarks[line]


def _argument_and_body(state: StateBlock, directive: _Directive) -> None:
    _body_from(state, directive, directive.argument)


def _box(state: StateBlock, kind: str, title: str, directive: _Directive, first: str = "") -> None:
    push_box(state, kind, title, partial(_body_from, state, directive, first))


def _admonition(state: StateBlock, directive: _Directive) -> None:
    _box(state, directive.name, "", directive, directive.argument)


def _titled_box(state: StateBlock, directive: _Directive) -> None:
    _box(state, "", directive.argument, directive)


def _unknown_box(state: StateBlock, directive: _Directive) -> None:
    kind = directive.name if _CLASS.fullmatch(directive.name) else ""
    _box(state, kind, directive.argument, directive)


def _version_change(state: StateBlock, directive: _Directive) -> None:
    version, _, text = directive.argument.partition(" ")
    _box(state, "", f"{_CHANGES[directive.name]} {version}".rstrip(), directive, text.strip())


def _captioned_body(state: StateBlock, directive: _Directive) -> None:
    if directive.argument:
        _paragraph(state, directive.argument)
    _body(state, directive)


def _signature(state: StateBlock, directive: _Directive) -> None:
    if directive.argument:
        push_html(state, f"<p><code>{escapeHtml(directive.argument)}</code></p>\n")
    _body(state, directive)


def _quote(state: StateBlock, directive: _Directive) -> None:
    state.push("blockquote_open", "blockquote", 1)
    _argument_and_body(state, directive)
    state.push("blockquote_close", "blockquote", -1)


def _tab(state: StateBlock, directive: _Directive) -> None:
    push_html(state, '<div class="tabbed-set"><label>')
    push_text(state, directive.argument)
    push_html(state, '</label><div class="tabbed-content">\n')
    _body(state, directive)
    push_html(state, "</div></div>\n")


def _formula(state: StateBlock, directive: _Directive) -> None:
    source = f"{directive.argument}\n{_source_text(state, directive)}".strip()
    push_html(state, f'<div class="math">\\[{escapeHtml(source)}\\]</div>\n')


def _code(state: StateBlock, directive: _Directive) -> None:
    language = _LANGUAGES.get(directive.name)
    if language is None:
        language = directive.argument.partition(" ")[0]
    _fence(state, directive, language)


def _code_cell(state: StateBlock, directive: _Directive) -> None:
    options = state.getLines(directive.start + 1, directive.body, 0, False)
    if not _REMOVED_CELL.search(options):
        _code(state, directive)


def _only(state: StateBlock, directive: _Directive) -> None:
    """Show what certainly stands in a page; what another build shows, no reader of the site can get."""
    if any(all(map(_IN_PAGES.fullmatch, term.split(" and "))) for term in directive.argument.split(" or ")):
        _body(state, directive)


def _tested_code(state: StateBlock, directive: _Directive) -> None:
    if "hide" not in directive.options:
        _code(state, directive)


def _unknown_code(state: StateBlock, directive: _Directive) -> None:
    _fence(state, directive, directive.name)


def _fence(state: StateBlock, directive: _Directive, language: str) -> None:
    fence = state.push("fence", "code", 0)
    fence.info, fence.content = language, _source_text(state, directive)
    fence.map = [directive.start, directive.end]


def _source_text(state: StateBlock, directive: _Directive) -> str:
    return state.getLines(directive.body, directive.end, state.sCount[directive.start], True)


def _paragraph(state: StateBlock, text: str) -> None:
    state.push("paragraph_open", "p", 1)
    push_text(state, text)
    state.push("paragraph_close", "p", -1)


def _glossary(state: StateBlock, directive: _Directive) -> None:
    """Read terms, each on a line, above their meanings, which are indented."""
    push_html(state, "<dl>\n")
    for start, end, is_term in _entries(state, directive):
        push_html(state, "<dt>" if is_term else "<dd>\n")
        if is_term:
            push_text(state, line_text(state, start).partition(" : ")[0])
        else:
            parse_body(state, start, end, state.sCount[start])
        push_html(state, "</dt>\n" if is_term else "</dd>\n")
    push_html(state, "</dl>\n")


def _entries(state: StateBlock, directive: _Directive) -> Iterator[tuple[int, int, bool]]:
    """Yield the first line, the one behind the last, and whether they are a term, of each term and meaning."""
    lines = [line for line in range(directive.body, directive.end) if not state.isEmpty(line)]
    margin = min((state.sCount[line] for line in lines), default=0)
    for is_term, group in groupby(lines, lambda line: state.sCount[line] == margin):
        entry = list(group)
        yield from ((line, line + 1, True) for line in entry) if is_term else [(entry[0], entry[-1] + 1, False)]


_CHANGES = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
    "version-added": "Added in version",
    "version-changed": "Changed in version",
    "version-deprecated": "Deprecated since version",
    "version-removed": "Removed in version",
}

#: Languages of directives that hold code, "" for none; others name theirs.
_LANGUAGES = {
    "csv-table": "csv",
    "doctest": "pycon",
    "parsed-literal": "",
    "productionlist": "",
    "testcode": "python",
    "testoutput": "",
}

_RENDERERS: dict[str, _Renderer] = {
    **dict.fromkeys("attention caution danger error hint important note seealso tip todo warning".split(), _admonition),
    **dict.fromkeys("admonition card dropdown grid-item-card margin sidebar topic".split(), _titled_box),
    **dict.fromkeys(_CHANGES, _version_change),
    **dict.fromkeys("centered list-table rubric table".split(), _captioned_body),
    **dict.fromkeys(
        "attribute class classmethod cmdoption confval data decorator decoratormethod describe directive enum"
        " enumerator envvar exception function macro member method object option property role setting staticmethod"
        " struct type var".split(),
        _signature,
    ),
    **dict.fromkeys("epigraph highlights pull-quote".split(), _quote),
    **dict.fromkeys("group-tab tab tab-item".split(), _tab),
    # Their arguments are widths, classes, files and addresses.
    **dict.fromkeys(
        "button-link button-ref card-carousel container div figure grid grid-item hlist tab-set"
        " tab-set-code tabs toggle".split(),
        _body,
    ),
    "code-cell": _code_cell,
    "compound": _argument_and_body,
    "glossary": _glossary,
    "math": _formula,
    "only": _only,
    **dict.fromkeys(
        "code code-block code-tab csv-table ipython parsed-literal productionlist prompt sourcecode".split(),
        _code,
    ),
    **dict.fromkeys("doctest testcode testoutput".split(), _tested_code),
    **dict.fromkeys(
        "bibliography codeauthor contents currentmodule default-domain default-role digraph eval-rst graph graphviz"
        " highlight ifconfig image include index inheritance-diagram literalinclude mermaid meta module plantuml plot"
        " program raw rst-class sectionauthor sectnum tableofcontents tabularcolumns testcleanup testsetup title"
        " toctree uml youtube".split(),
        _drop,
    ),
}


def _renderer(directive: _Directive) -> _Renderer:
    renderer = _RENDERERS.get(directive.name)
    if renderer:
        return renderer
    if directive.name.startswith("auto"):
        return _drop
    return _unknown_box if directive.in_colons else _unknown_code
