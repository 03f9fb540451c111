"""Formats blocks that hold blocks: list items, quotes, admonitions, tabs, definitions, footnotes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from chapterverse.model import Block, BlockKind, join_blocks

Blocks = tuple[Block, ...]


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
    """Return a block quote."""
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


def definition(terms: list[str], meanings: list[Blocks]) -> Block | None:
    """Return terms, a line each, and below them what they mean."""
    head = "\n".join(f"**{term}**" for term in terms if term)
    return titled_block(BlockKind.DEFINITION, head, tuple(block for meaning in meanings for block in meaning))


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
