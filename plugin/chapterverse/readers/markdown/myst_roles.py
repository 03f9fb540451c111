"""Reads the roles of MyST as a build shows them: {func}`~a.b` as the code `b`, {doc}`Setup <a/b>` as "Setup".

The plugin `myst_role` of mdit-py-plugins copies the rest of a paragraph at each role, which takes quadratic time. This
one lets the parser's own rule for code read what is behind the name.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, backtick

from chapterverse.readers.sections.inline import code_span

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
_REFERENCES = frozenset(("ref", "numref"))
_SUPERSCRIPTS = frozenset(("sup", "superscript"))


def roles_plugin(md: MarkdownIt) -> None:
    """Teach a parser to read roles as code or text."""
    md.inline.ruler.before("backticks", "role", _role)


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
        token.content, is_code = render_role(role.group(1), token.content)
        if is_code:
            token.meta["verbatim"] = code_span(token.content)
        else:
            token.type, token.tag, token.markup = "text_special", "", ""
    return True


def render_role(role: str, content: str) -> tuple[str, bool]:
    """Return what a build shows for a role, and whether as code. Text that only a build knows is made of its label."""
    name = role.lower().rpartition(":")[2]
    if name in _LITERAL_CODE:
        return content, True
    if name in _LITERAL:
        return (f"^{content}" if name in _SUPERSCRIPTS else content), False
    text = content[1:] if content.startswith("!") else _title(content) or _of_target(name, content) or content
    return text, name in _NAMES or name in _CODE or (name == "any" and _NAME.fullmatch(text) is not None)


def _title(content: str) -> str:
    """Return the title of `title <target>`, "" if there is none."""
    return content[: content.rfind("<")].strip() if content.endswith(">") and "<" in content else ""


def _of_target(name: str, target: str) -> str:
    """Return what a build shows for a target without a title, as far as the target tells."""
    if name in _NAMES:
        return _short(target)
    if name in _REFERENCES:
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
