"""Blocks that hold code or other blocks: recognizes what generators write around them, and formats each kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from chapterverse.model import Block, BlockKind, join_blocks
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


_CODE_TITLES = frozenset("filename code-block-caption code-with-filename-file hextra-code-filename".split())


def _is_title(node: Node) -> bool:
    return node.name == "figcaption" or any(c in _CODE_TITLES or c.startswith("codeBlockTitle_") for c in node.classes)


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

Blocks = tuple[Block, ...]

#: The attribute of a list item that holds its bullet, or the sign behind its number, and the spaces before its text.
LIST_MARKER = "data-marker"
_BULLET = re.compile(r"[-*+] {1,4}\Z")
_DELIMITER = re.compile(r"[.)] {1,4}\Z")

_BOXES = frozenset(
    "admonition admonitionblock callout custom-block markdown-alert theme-admonition topic sidebar"
    " starlight-aside".split()
)
_ROLES = frozenset(("alert", "note"))
_TITLES = frozenset(
    "admonition-title callout-header custom-block-title markdown-alert-title topic-title sidebar-title"
    " starlight-aside__title".split()
)
#: Remarks that authors can make in all generators together; on a `details` any other class is styling.
ADMONITIONS = frozenset(
    "abstract attention bug caution danger deprecated error example fail failure faq help hint important info note"
    " question quote seealso success summary tip tldr todo versionadded versionchanged warning".split()
)
#: Names of kinds that are several words.
_LABELS = {"seealso": "See also"}
_PREFIXES = ("theme-admonition-", "markdown-alert-", "starlight-aside--", "callout-")


def is_callout(node: Node) -> bool:
    """Return whether an element is a titled box: an admonition of any generator, or `details`."""
    classes = node.classes
    if node.name == "details" or not _BOXES.isdisjoint(classes):
        return True
    # DocFX has no other word for its boxes than their kind: "NOTE".
    return bool(classes) and (
        node.get("role") in _ROLES or (classes[0].isupper() and classes[0].lower() in ADMONITIONS)
    )


def title_of(box: Node) -> Node | None:
    for child in box.elements():
        if child.name == "summary" or any(c in _TITLES or c.startswith("admonitionHeading_") for c in child.classes):
            return child
    return None


def kind_of(box: Node) -> str:
    """Return the kind of a box, "Warning"; "" where it has none or only its looks."""
    for name in box.classes:
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        if name in ADMONITIONS:
            return _LABELS.get(name) or name.capitalize()
    return ""


def headline(kind: str, title: str) -> str:
    """Return the first line of a box: its kind and title, once if they say the same; "" if it has neither."""
    if kind and title and kind.casefold() != title.casefold():
        return f"**{kind}: {title}**"
    return f"**{kind or title}**" if kind or title else ""


def is_source_dump(box: Node, title: str) -> bool:
    """Return whether a box repeats the source code that its page documents (mkdocstrings' `show_source`)."""
    return "mkdocstrings-source" in box.classes or title.startswith("Source code in ")


def list_marker(item: Node, number: int | None) -> str:
    """Return what stands before the text of a list item, as its source has it where that is known."""
    source_marker = item.get(LIST_MARKER) or ""
    if number is None:
        return source_marker if _BULLET.match(source_marker) else "- "
    return f"{number}{source_marker if _DELIMITER.match(source_marker) else '. '}"


def list_item(marker: str, parts: Blocks) -> Block | None:
    """Return the item behind its `marker` ("- ", "12. "), with its further lines indented to match."""
    if not parts:
        return None
    first, rest = parts[0], parts[1:]
    opening = marker + indent(first.text, len(marker))
    if not rest and first.kind is BlockKind.PARAGRAPH:
        return Block(BlockKind.LIST_ITEM, opening)
    text = marker + indent(_join_tight(parts), len(marker))
    # Where the item is cut, its first piece still says which item it is.
    if first.kind is BlockKind.PARAGRAPH:
        parts = (replace(first, text=opening), *rest)
    return Block(BlockKind.LIST_ITEM, text, parts=parts)


def quote(parts: Blocks) -> Block | None:
    if not parts:
        return None
    lines = join_blocks(parts).split("\n")
    return Block(BlockKind.QUOTE, "\n".join(f"> {line}" if line else ">" for line in lines), parts=parts)


def titled_block(kind: BlockKind, head: str, parts: Blocks) -> Block | None:
    """Return an admonition or a tab: its title line, then its content. None if it has neither."""
    if not parts:
        return Block(kind, head, head=head) if head else None
    text = f"{head}\n\n{join_blocks(parts)}" if head else join_blocks(parts)
    return Block(kind, text, head=head, parts=parts)


def definition(terms: list[str], meanings: Blocks) -> Block | None:
    """Return terms, a line each, and below them what they mean."""
    return titled_block(BlockKind.DEFINITION, "\n".join(f"**{term}**" for term in terms if term), meanings)


def footnote(label: str, parts: Blocks) -> Block:
    """Return a footnote, behind the marker that refers to it if it has a label."""
    if not label:
        return Block(BlockKind.FOOTNOTE, join_blocks(parts), parts=parts)
    head = f"[^{label}]:"
    return Block(BlockKind.FOOTNOTE, f"{head} {indent(join_blocks(parts), 4)}".rstrip(), head=head, parts=parts)


def indent(text: str, width: int) -> str:
    """Return `text` with every line but the first indented; empty lines stay empty."""
    pad = " " * width
    return "\n".join(pad + line if line and i else line for i, line in enumerate(text.split("\n")))


def _join_tight(parts: Blocks) -> str:
    """Join as `join_blocks` does, but a list right below the line that introduces it."""
    out = join_blocks(parts[:1])
    for before, block in pairwise(parts):
        close = block.kind is BlockKind.LIST_ITEM and before.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM)
        out += ("\n" if close else "\n\n") + block.text
    return out
