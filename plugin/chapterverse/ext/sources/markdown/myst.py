"""Reads MyST, the Markdown of Sphinx: its roles, directives, targets, comments and breaks, as a build shows them.

A directive is a fence, ```{name} argument, or one of tildes or colons. A box or another container holds Markdown. What
shows nothing, or only a build can show, is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, backtick
from mdit_py_plugins.myst_blocks import myst_block_plugin

from chapterverse.ext.sources.markdown.generator_syntax import (
    INTERRUPTING,
    line_text,
    parse_body,
    push_box,
    push_html,
    push_text,
)
from chapterverse.ext.sources.markdown.slugs import slugify
from chapterverse.readers.sections.inline import code_span
from chapterverse.readers.urls import SiteGenerator

_OPENING = re.compile(r"(`{3,}|~{3,}|:{3,})[ \t]*\{([^\s{}`]+)\}[ \t]*(.*)")
_CLOSING = re.compile(r"(`{3,}|~{3,}|:{3,})[ \t]*\Z")
_OPTION = re.compile(r":[\w-]+:(?:\s|\Z)")
_MORE_OPTIONS = re.compile(r":(?!:)")
_YAML_BORDER = re.compile(r"-{3,}\s*\Z")
_CARD_BORDER = re.compile(r"\^{3,}\s*\Z")
_CLASS = re.compile(r"[A-Za-z][\w-]*")
# Conditions that hold in a build for browsers; any other tag is one that a build may be given.
_IN_PAGES = re.compile(r"\s*(?:(?:builder_|format_)?(?:dir|single)?html|not (?:latex|text|man|epub))\s*")
# Tags of a notebook's cell, and an option of tested code, that take code out of the page.
_HIDDEN = re.compile(r"\bremove-(?:cell|input)\b|^[ \t]*:hide:(?:\s|\Z)", re.MULTILINE)

#: Directives in each other; deeper ones are code, so that the work stays linear.
_MAX_DEPTH = 20
_DEPTH = "directives"


@dataclass(frozen=True, slots=True)
class _Directive:
    """A directive by its name without a domain, what follows the name, its option lines, and the numbers of its lines.

    Attributes:
        body: the first line below its options.
        end: the line behind its body.
        in_colons: whether its fence is one of colons, which hold Markdown.
    """

    name: str
    argument: str
    options: str
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
    md.inline.ruler.before("backticks", "role", _role)


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
    body = _below_options(state, start + 1, end)
    options = state.getLines(start + 1, body, 0, False)
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


def _below_options(state: StateBlock, start: int, end: int) -> int:
    """Return the first line below the options of a directive, which may be a block of YAML."""
    if start < end and _YAML_BORDER.match(line_text(state, start)):
        closing = (line for line in range(start + 1, end) if _YAML_BORDER.match(line_text(state, line)))
        return next(closing, start - 1) + 1
    line = start
    while line < end and state.isEmpty(line):
        line += 1
    if line == end or not _OPTION.match(line_text(state, line)):
        return start
    while line < end and _MORE_OPTIONS.match(line_text(state, line)):
        line += 1
    return line


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
    state.bMarks[start], state.tShift[start] = state.src.rindex(first, state.bMarks[start], state.eMarks[start]), 0
    if directive.body == start + 1:
        parse_body(state, start, directive.end, state.sCount[start])
    else:
        parse_body(state, start, start + 1, state.sCount[start])
        _body(state, directive)
    state.bMarks[start], state.tShift[start] = before


def _box(state: StateBlock, kind: str, title: str, directive: _Directive, first: str = "") -> None:
    push_box(state, kind, title, partial(_body_from, state, directive, first))


def _admonition(state: StateBlock, directive: _Directive) -> None:
    _box(state, directive.name, "", directive, directive.argument)


def _titled_box(state: StateBlock, directive: _Directive) -> None:
    is_kind = directive.name not in _RENDERERS and _CLASS.fullmatch(directive.name)
    _box(state, directive.name if is_kind else "", directive.argument, directive)


def _version_change(state: StateBlock, directive: _Directive) -> None:
    version, _, text = directive.argument.partition(" ")
    change = _CHANGES[directive.name.removeprefix("version").removeprefix("-")]
    _box(state, "", f"{change} version {version}".rstrip(), directive, text.strip())


def _captioned_body(state: StateBlock, directive: _Directive) -> None:
    if directive.argument:
        state.push("paragraph_open", "p", 1)
        push_text(state, directive.argument)
        state.push("paragraph_close", "p", -1)
    _body(state, directive)


def _signature(state: StateBlock, directive: _Directive) -> None:
    if directive.argument:
        push_html(state, f"<p><code>{escapeHtml(directive.argument)}</code></p>\n")
    _body(state, directive)


def _argument_and_body(state: StateBlock, directive: _Directive) -> None:
    _body_from(state, directive, directive.argument)


def _quote(state: StateBlock, directive: _Directive) -> None:
    state.push("blockquote_open", "blockquote", 1)
    _argument_and_body(state, directive)
    state.push("blockquote_close", "blockquote", -1)


def _tab(state: StateBlock, directive: _Directive) -> None:
    push_html(state, '<div class="tabbed-set"><div role="tab">')
    push_text(state, directive.argument)
    push_html(state, '</div><div class="tabbed-block">\n')
    _body(state, directive)
    push_html(state, "</div></div>\n")


def _formula(state: StateBlock, directive: _Directive) -> None:
    source = f"{directive.argument}\n{_source_text(state, directive)}".strip()
    push_html(state, f'<div class="math">\\[{escapeHtml(source)}\\]</div>\n')


def _code(state: StateBlock, directive: _Directive) -> None:
    named = directive.argument.partition(" ")[0] if directive.name in _RENDERERS else directive.name
    fence = state.push("fence", "code", 0)
    fence.info, fence.content = _LANGUAGES.get(directive.name, named), _source_text(state, directive)
    fence.map = [directive.start, directive.end]


def _only(state: StateBlock, directive: _Directive) -> None:
    """Show what certainly stands in a page; what another build shows, no reader of the site can get."""
    if any(all(map(_IN_PAGES.fullmatch, term.split(" and "))) for term in directive.argument.split(" or ")):
        _body(state, directive)


def _run_code(state: StateBlock, directive: _Directive) -> None:
    if not _HIDDEN.search(directive.options):
        _code(state, directive)


def _source_text(state: StateBlock, directive: _Directive) -> str:
    return state.getLines(directive.body, directive.end, state.sCount[directive.start], True)


def _glossary(state: StateBlock, directive: _Directive) -> None:
    """Read terms, each on a line, above their meanings, which are indented."""
    lines = [line for line in range(directive.body, directive.end) if not state.isEmpty(line)]
    margin = min((state.sCount[line] for line in lines), default=0)
    push_html(state, "<dl>\n")
    for is_term, group in groupby(lines, lambda line: state.sCount[line] == margin):
        entry = list(group)
        for term in entry if is_term else ():
            push_html(state, "<dt>")
            push_text(state, line_text(state, term).partition(" : ")[0])
            push_html(state, "</dt>\n")
        if not is_term:
            push_html(state, "<dd>\n")
            parse_body(state, entry[0], entry[-1] + 1, state.sCount[entry[0]])
            push_html(state, "</dd>\n")
    push_html(state, "</dl>\n")


#: Beginnings of a note about a version, by the directive behind "version" or "version-".
_CHANGES = {"added": "Added in", "changed": "Changed in", "deprecated": "Deprecated since", "removed": "Removed in"}

#: Languages of directives that hold code, "" for none; others name theirs.
_LANGUAGES = {
    "csv-table": "csv",
    "doctest": "pycon",
    "parsed-literal": "",
    "productionlist": "",
    "testcode": "python",
    "testoutput": "",
}

_DIRECTIVES: dict[_Renderer, str] = {
    _admonition: "attention caution danger error hint important note seealso tip todo warning",
    _titled_box: "admonition card dropdown grid-item-card margin sidebar topic",
    _version_change: "deprecated version-added version-changed version-deprecated version-removed versionadded"
    " versionchanged versionremoved",
    _captioned_body: "centered list-table rubric table",
    _signature: "attribute class classmethod cmdoption confval data decorator decoratormethod describe directive enum"
    " enumerator envvar exception function macro member method object option property role setting staticmethod struct"
    " type var",
    _quote: "epigraph highlights pull-quote",
    _tab: "group-tab tab tab-item",
    # Their arguments are widths, classes, files and addresses.
    _body: "button-link button-ref card-carousel container div figure grid grid-item hlist tab-set tab-set-code tabs"
    " toggle",
    _argument_and_body: "compound",
    _glossary: "glossary",
    _formula: "math",
    _only: "only",
    _code: "code code-block code-tab csv-table ipython parsed-literal productionlist prompt sourcecode",
    _run_code: "code-cell doctest testcode testoutput",
    _drop: "bibliography codeauthor contents currentmodule default-domain default-role digraph eval-rst graph graphviz"
    " highlight ifconfig image include index inheritance-diagram literalinclude mermaid meta module plantuml plot"
    " program raw rst-class sectionauthor sectnum tableofcontents tabularcolumns testcleanup testsetup title toctree"
    " uml youtube",
}
_RENDERERS = {name: renderer for renderer, names in _DIRECTIVES.items() for name in names.split()}


def _renderer(directive: _Directive) -> _Renderer:
    other = _drop if directive.name.startswith("auto") else _titled_box if directive.in_colons else _code
    return _RENDERERS.get(directive.name, other)


# Roles: the plugin of mdit-py-plugins copies the rest of a paragraph at each one, which takes quadratic time. Ours lets
# the parser's own rule for code read what is behind the name.

_ROLE = re.compile(r"\{([A-Za-z][\w+:.-]*)\}(`+)", re.ASCII)
_NAME = re.compile(r"[\w.]+(?:\(\))?")

#: Roles, without their domain, whose text is a name of code: it may be shortened by "~", and lead elsewhere by "<…>".
_NAMES = frozenset(
    "attr attribute class const data deco decorator enum enumerator exc exception func function macro member meth"
    " method mod module namespace obj object prop property struct type var".split()
)
#: Other roles that show code; those of the second group show all that is written.
_CODE = frozenset("confval download envvar keyword option setting token".split())
_LITERAL_CODE = frozenset("code command file literal makevar mimetype newsgroup program regexp samp".split())
_LITERAL = frozenset("abbr dfn eq guilabel kbd math menuselection sub subscript sup superscript".split())


def _role(state: StateInline, silent: bool) -> bool:
    role = _ROLE.match(state.src, state.pos) if state.src.startswith("{", state.pos) else None
    if not role:
        return False
    start, pending = state.pos, state.pending
    state.pos = role.start(2)
    backtick(state, silent)
    if state.pos == role.end():
        # These backticks have no others that end the code.
        state.pos, state.pending = start, pending
        return False
    if not silent:
        token = state.tokens[-1]
        # A verbatim paragraph is made of its source, so it has to know what stands for the role.
        token.meta["span"] = (start, state.pos)
        token.content, is_code = _render_role(role.group(1), token.content)
        if is_code:
            token.meta["verbatim"] = code_span(token.content)
        else:
            token.type, token.tag, token.markup = "text_special", "", ""
    return True


def _render_role(role: str, content: str) -> tuple[str, bool]:
    """Return what a build shows for a role, and whether as code. Text that only a build knows is made of its label."""
    name = role.lower().rpartition(":")[2]
    if name in _LITERAL_CODE:
        return content, True
    if name in _LITERAL:
        return (f"^{content}" if name in ("sup", "superscript") else content), False
    text = content[1:] if content.startswith("!") else _title(content) or _of_target(name, content) or content
    return text, name in _NAMES or name in _CODE or (name == "any" and _NAME.fullmatch(text) is not None)


def _title(content: str) -> str:
    """Return the title of `title <target>`, "" if there is none."""
    return content[: content.rfind("<")].strip() if content.endswith(">") and "<" in content else ""


def _of_target(name: str, target: str) -> str:
    """Return what a build shows for a target without a title, as far as the target tells."""
    if name in _NAMES:
        return _short(target)
    if name in ("ref", "numref"):
        # Before the colon, the extension autosectionlabel has the file.
        return target.rpartition(":")[2].replace("-", " ")
    if name == "doc":
        return target.rstrip("/").rpartition("/")[2]
    if name in ("pep", "rfc"):
        return f"{name.upper()} {target}"
    return target


def _short(name: str) -> str:
    """Return the last part of `~a.b`, and any other name without leading dots."""
    name = name.lstrip(".")
    return re.split(r"\.|::", name[1:])[-1] if name.startswith("~") else name
