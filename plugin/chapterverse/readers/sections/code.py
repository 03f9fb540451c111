"""Extracts code blocks: the exact text, the language, the title."""

from __future__ import annotations

import re
from collections.abc import Mapping

from chapterverse.model import Block, BlockKind
from chapterverse.readers.html.dom import LINE_MARKS, MARKED_LINES, Child, Node
from chapterverse.readers.html.visible_text import collapse
from chapterverse.readers.sections.inline import backtick_fence, is_permalink

_LANGUAGE = re.compile(r"(?:language|highlight|lang|hl)-(?:source-)?([\w+#.-]+)$")
_NO_LANGUAGE = frozenset(("none", "default", "text", "plaintext", "plain", "txt", "source", "notranslate"))
#: Classes in front of one that is a language (pandoc, Hexo).
_BEFORE_LANGUAGE = frozenset(("sourceCode", "highlight"))
#: Jupyter names its shell, not the language of a cell.
_SHELLS = {"ipython": "python", "ipython3": "python", "ipynb": "python"}
_LINES = frozenset(("line", "ec-line", "code-line", "token-line"))


def code_language(node: Node) -> str:
    """Return the language that the attributes or classes of an element name, "" if none."""
    stated = node.get("data-language") or node.get("data-lang")
    classes = node.classes
    if not stated and len(classes) > 1 and classes[0] in _BEFORE_LANGUAGE and not _LANGUAGE.match(classes[1]):
        stated = classes[1] if len(classes) == 2 or classes[0] == "sourceCode" else None
    named = stated or next((match.group(1) for match in map(_LANGUAGE.match, classes) if match), "")
    return "" if named.lower() in _NO_LANGUAGE else _SHELLS.get(named.lower(), named)


def pre_language(pre: Node) -> str:
    """Return the language that a `pre` or the `code` in it names; a diagram's class is its language."""
    named = code_language(pre) or next((code_language(c) for c in pre.walk() if c.name == "code"), "")
    return named or ("mermaid" if "mermaid" in pre.classes else "")


def code_text(pre: Node, marks: Mapping[Node, str]) -> str:
    """Return the text of a `pre` as a reader would copy it: no blank lines around it, indentation kept.

    Args:
        marks: of its lines (see `line_marks`), with which they begin, as in a diff.
    """
    out: list[str] = []
    _append_text(pre.children, out, marks)
    return "".join(out).rstrip().removeprefix("\n")


def line_marks(pre: Node) -> dict[Node, str]:
    """Return the lines of a code with "+", "-" or " ", none if no line is marked as added or removed."""
    if not pre.holds & MARKED_LINES:
        return {}
    lines = [line for node in (pre, *pre.elements()) for line in node.elements() if not _LINES.isdisjoint(line.classes)]
    marks = {line: next(filter(None, map(LINE_MARKS.get, line.classes)), " ") for line in lines}
    return marks if set(marks.values()) - {" "} else {}


def _append_text(children: list[Child], out: list[str], marks: Mapping[Node, str]) -> None:
    for child in children:
        if isinstance(child, str):
            out.append(child)
        elif child.name == "br":
            out.append("\n")
        else:
            if child in marks:
                out.append(marks[child])
            _append_text(child.children, out, marks)
            # Some highlighters make a block of each line instead of a line break.
            if child.block and out and not out[-1].endswith("\n"):
                out.append("\n")


def fence(text: str, lang: str = "", title: str = "") -> Block:
    """Return a fenced code block. Its info string is the language, and `title="…"` where it has a title."""
    ticks = backtick_fence(text, 3)
    info = f'{lang} title="{title}"' if title else lang
    return Block(BlockKind.CODE, f"{ticks}{info}\n{text}\n{ticks}", head=f"{ticks}{info}", tail=ticks)


_TITLES = frozenset("filename code-block-caption code-with-filename-file hextra-code-filename".split())


def _is_title(node: Node) -> bool:
    """Return whether an element names the code below it: a file name, a caption."""
    return node.name == "figcaption" or any(c in _TITLES or c.startswith("codeBlockTitle_") for c in node.classes)


def take_title(wrapper: Node) -> str:
    """Return the title of the code in `wrapper`, "" if it has none, and take it out of the tree."""
    parents = [wrapper]
    while parents:
        parent = parents.pop()
        for child in parent.elements():
            if _is_title(child):
                parent.children.remove(child)
                child.children = [c for c in child.children if isinstance(c, str) or not is_permalink(c)]
                return collapse(child.text()).replace('"', "'")
            # Code in a wrapper of its own has its title there.
            if child.name != "pre" and not is_wrapper(child):
                parents.append(child)
    return ""


def is_wrapper(node: Node) -> bool:
    """Return whether a block only styles the code inside it."""
    if node.name == "figure":
        return any(inner.name == "pre" for inner in node.walk())
    return any(c in _WRAPPERS or _LANGUAGE.match(c) for c in node.classes)


_WRAPPERS = frozenset(
    "highlight literal-block-wrapper theme-code-block sourceCode code-with-filename hextra-code-block".split()
)
