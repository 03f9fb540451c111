"""Pages made from bytes, so that a fuzzer of bytes reaches well-formed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from chapterverse.model import Block, BlockKind, Page, Section, join_blocks

T = TypeVar("T")

_DEEPEST = 5
_INLINE = ("b", "em", "code", "span", "a href=x", "sup", "kbd", "mark", 'abbr title="none"')
_BOXES = (
    ('<div class="admonition note"><p class="admonition-title">', "</p>", "</div>"),
    ("<details><summary>", "</summary>", "</details>"),
    ('<div class="tabbed-set"><label>', '</label><div class="tabbed-content">', "</div></div>"),
    ("<blockquote><p>", "</p>", "</blockquote>"),
    ("<section><p>", "</p>", "</section>"),
    ('<div class="theme-admonition alert"><p>', "</p>", "</div>"),
)
_PARTS = (
    "word",
    "x.y",
    "----",
    "日本",
    "({[",
    "…",
    " ",
    " ",
    "\n",
    "\t",
    "\x00",
    "\ud800",
    "é",
    "Ⅷ",
    "12345",
    "'S",
    "😀",
)


class Choices:
    """Decisions read from bytes; when they run out, the first of all options is taken."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % limit

    def of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def word(self) -> str:
        """Return one to six ASCII letters and digits."""
        return "".join(self.of("abcdefghij0123456789") for _ in range(1 + self.below(6)))

    def text(self, longest: int) -> str:
        """Return up to `longest` words, blanks, marks and what breaks encoders."""
        return "".join(self.of(_PARTS) * (1 + self.below(4)) for _ in range(self.below(longest)))


def html_of(choices: Choices) -> str:
    """Return well-formed HTML of which every word is visible."""
    return "".join(_element(choices, 0) for _ in range(1 + choices.below(8)))


def _element(choices: Choices, depth: int) -> str:
    kind = choices.below(9 if depth < _DEEPEST else 3)
    inner = "".join(_element(choices, depth + 1) for _ in range(choices.below(4))) if kind > 2 else ""
    if kind == 0:
        return f"<p>{_inline(choices, 0)}</p>"
    if kind == 1:
        level = 1 + choices.below(6)
        return f'<h{level} id="{choices.word()}">{_inline(choices, 0)}</h{level}>'
    if kind == 2:
        return f"<pre><code>{choices.word()}\n  {choices.word()}</code></pre>"
    if kind == 3:
        return f"<ul><li>{inner}</li><li>{_inline(choices, 0)}</li></ul>"
    if kind == 4:
        return f"<table><tr><th>{choices.word()}</th></tr><tr><td>{inner}</td><td>{choices.word()}</td></tr></table>"
    if kind == 5:
        return f"<dl><dt>{choices.word()}</dt><dd>{inner}</dd></dl>"
    if kind == 6:
        return f"<ol start={choices.below(12)}><li>{inner}{choices.word()}</li></ol>"
    opening, middle, closing = choices.of(_BOXES)
    return f"{opening}{choices.word()}{middle}{inner}{closing}"


def _inline(choices: Choices, depth: int) -> str:
    if depth >= _DEEPEST or choices.below(3) == 0:
        return choices.word()
    tag = choices.of(_INLINE)
    parts = " ".join(_inline(choices, depth + 1) for _ in range(choices.below(3)))
    return f"{choices.word()} <{tag}>{parts}</{tag.split()[0]}>"


def markdown_of(choices: Choices) -> str:
    """Return Markdown of which every word is visible."""
    return "\n\n".join(_markdown(choices, 0) for _ in range(1 + choices.below(8)))


def _markdown(choices: Choices, depth: int) -> str:
    kind = choices.below(8 if depth < _DEEPEST else 3)
    inner = "\n\n".join(_markdown(choices, depth + 1) for _ in range(1 + choices.below(3))) if kind > 4 else ""
    if kind == 0:
        return f"x{choices.word()} {choices.of(('**x**', '`x`', '[x](y)', 'x'))} {choices.word()}"
    if kind == 1:
        return f"{'#' * (1 + choices.below(6))} x{choices.word()}"
    if kind == 2:
        return f"```{choices.of(('', 'py', 'text'))}\nx{choices.word()}\n\n  x{choices.word()}\n```"
    if kind == 3:
        return f"| x{choices.word()} | x |\n| --- | --- |\n| {choices.word()} | x{choices.word()} |"
    if kind == 4:
        return f"- x{choices.word()}\n- x{choices.word()}"
    if kind == 5:
        return _nested("- ", "  ", inner)
    if kind == 6:
        return _nested("> ", "> ", inner)
    return _nested(f'!!! note "x{choices.word()}"\n    ', "    ", inner)


def _nested(first: str, following: str, text: str) -> str:
    return first + text.replace("\n", f"\n{following}")


def page_of(choices: Choices) -> Page:
    """Return a page of any blocks that readers could make, and some that none would."""
    sections = []
    for i in range(choices.below(4)):
        path = tuple(choices.text(12) for _ in range(choices.below(4)))
        blocks = tuple(_block(choices, 0) for _ in range(choices.below(7)))
        sections.append(Section(path[-1] if path else None, choices.below(4), f"s{i}", path, blocks))
    return Page("a.md", "https://docs.example/a/", choices.text(4), "en", tuple(sections))


def _block(choices: Choices, depth: int) -> Block:
    kind = choices.below(6 if depth < _DEEPEST else 4)
    lines = [choices.text(30) * (1 + choices.below(8)) for _ in range(1 + choices.below(12))]
    body = "\n".join(lines)
    if kind == 0:
        return Block(BlockKind.PARAGRAPH, body)
    if kind == 1:
        head = f"```{choices.word()}"
        return Block(BlockKind.CODE, f"{head}\n{body}\n```", head, "```")
    if kind == 2:
        head = f"| {choices.word()} | b |\n| --- | --- |"
        return Block(BlockKind.TABLE, f"{head}\n{body}", head)
    if kind == 3:
        return Block(BlockKind.LIST_ITEM, f"- {body}")
    parts = tuple(_block(choices, depth + 1) for _ in range(1 + choices.below(4)))
    head = choices.text(9).strip()
    return Block(BlockKind.ADMONITION, f"{head}\n\n{join_blocks(parts)}", head, parts=parts)
