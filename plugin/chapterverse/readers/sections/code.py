"""Extracts code blocks: the exact text, the language, the title."""

from __future__ import annotations

import re

from chapterverse.model import Block, BlockKind
from chapterverse.readers.html.dom import Child, Node
from chapterverse.readers.html.visible_text import collapse
from chapterverse.readers.sections.inline import backtick_fence, is_permalink

_LANGUAGE = re.compile(r"(?:language|highlight|lang)-(?:source-)?([\w+#.-]+)$")
_NO_LANGUAGE = frozenset(("none", "default", "text", "plaintext", "plain", "txt", "source", "notranslate"))


def code_language(node: Node) -> str:
    """Return the language that the classes of an element name, "" if none."""
    for name in node.classes:
        match = _LANGUAGE.match(name)
        if match:
            return "" if match.group(1).lower() in _NO_LANGUAGE else match.group(1)
    return ""


def pre_language(pre: Node) -> str:
    """Return the language that a `pre` or the `code` in it names; a diagram's class is its language."""
    named = code_language(pre) or next((code_language(c) for c in pre.elements() if c.name == "code"), "")
    return named or ("mermaid" if "mermaid" in pre.classes else "")


def code_text(pre: Node) -> str:
    """Return the text of a `pre` as a reader would copy it: no blank lines around it, indentation kept."""
    out: list[str] = []
    _append_text(pre.children, out)
    return "".join(out).rstrip().removeprefix("\n")


def _append_text(children: list[Child], out: list[str]) -> None:
    for child in children:
        if isinstance(child, str):
            out.append(child)
        elif child.name == "br":
            out.append("\n")
        else:
            _append_text(child.children, out)
            # Some highlighters make a block of each line instead of a line break.
            if child.block and out and not out[-1].endswith("\n"):
                out.append("\n")


def fence(text: str, lang: str = "", title: str = "") -> Block:
    """Return a fenced code block. Its info string is the language, and `title="…"` where it has a title."""
    ticks = backtick_fence(text, 3)
    info = f'{lang} title="{title}"' if title else lang
    return Block(BlockKind.CODE, f"{ticks}{info}\n{text}\n{ticks}", head=f"{ticks}{info}", tail=ticks)


def is_title(node: Node) -> bool:
    """Return whether an element names the code below it: a file name, a caption."""
    return any(c in ("filename", "code-block-caption") or c.startswith("codeBlockTitle_") for c in node.classes)


def take_title(wrapper: Node) -> str:
    """Return the title of the code in `wrapper`, "" if it has none, and take it out of the tree."""
    parents = [wrapper]
    while parents:
        parent = parents.pop()
        for child in parent.elements():
            if is_title(child):
                parent.children.remove(child)
                child.children = [c for c in child.children if isinstance(c, str) or not is_permalink(c)]
                return collapse(child.text()).replace('"', "'")
            # Code in a wrapper of its own has its title there.
            if child.name != "pre" and not is_wrapper(child):
                parents.append(child)
    return ""


def is_wrapper(node: Node) -> bool:
    """Return whether a block only styles the code inside it."""
    return any(
        c in ("highlight", "literal-block-wrapper", "theme-code-block") or _LANGUAGE.match(c) for c in node.classes
    )


def is_line_table(table: Node) -> bool:
    """Return whether a table is only there to number the lines of code."""
    return not {"highlighttable", "lntable", "rouge-table"}.isdisjoint(table.classes)
