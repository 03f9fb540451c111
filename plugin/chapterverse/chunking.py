"""Packing blocks into chunks: small ones for finding, under a hard cap, never cutting inside a block that fits.

Sizes are cl100k tokens of the text as embedded (heading path and text). 256 under a cap of 512 is measured: small
chunks find the right section more often than large ones, and the answer is expanded to its section anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from chapterverse import tokens
from chapterverse.model import (
    Block,
    BlockKind,
    Chunk,
    Page,
    Scope,
    Section,
    chunk_id,
    embed_hash,
    embed_text,
    join_blocks,
)

#: Cap of DESIGN 4.1; a path longer than a quarter of it is shortened from the middle.
CAP = 512
TARGET = 256

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


@dataclass(frozen=True, slots=True)
class Budget:
    """How large chunks may be, in cl100k tokens of path and text together.

    Attributes:
        target: packing stops before this size.
        cap: no chunk is larger, whatever it holds.
    """

    target: int = TARGET
    cap: int = CAP

    @property
    def fingerprint(self) -> str:
        return f"chunks/{self.target}/{self.cap}"

    def smaller(self) -> Budget:
        """Return three quarters of it, for a page with a text that a model found too long."""
        return Budget(max(16, self.target * 3 // 4), max(32, self.cap * 3 // 4))


def chunk(page: Page, scope: Scope, fingerprint: str, budget: Budget = Budget()) -> list[Chunk]:
    """Cut a page into chunks, in reading order.

    Args:
        page: what a reader made of it.
        scope: site and docs version, part of each chunk's identity.
        fingerprint: the embedder's, part of each chunk's `embed_hash`.
        budget: sizes.
    """
    chunks: list[Chunk] = []
    for section, text in _texts(page, budget):
        path = _short_path(section.path, budget.cap // 4)
        cited = section.anchor if section.anchor_verified else None
        chunks.append(
            Chunk(
                chunk_id=chunk_id(scope, page.language, page.file_path, section.anchor, len(chunks), text, path),
                embed_hash=embed_hash(fingerprint, embed_text(path, text)),
                text=text,
                chapter_title=page.title,
                section_heading=section.heading,
                heading_path=path,
                chunk_index=len(chunks),
                source_file_path=page.file_path,
                url=f"{page.url}#{cited}" if cited else page.url,
                anchor_verified=cited is not None,
                source_domain=urlsplit(page.url).hostname or "",
                content_type=page.content_type,
                tags=page.tags,
                language=page.language,
                version=scope.version,
                created_at=page.created_at or "",
            )
        )
    return chunks


def _texts(page: Page, budget: Budget) -> Iterator[tuple[Section, str]]:
    """Yield the text of each chunk with its section; a heading with nothing below it stands as its own text."""
    sections = page.sections
    for i, section in enumerate(sections):
        room = _room(section, budget)
        if section.blocks:
            for text in pack(section.blocks, room):
                yield section, text
        elif section.heading and not (i + 1 < len(sections) and sections[i + 1].level > section.level):
            yield section, _cut_text(section.heading, room.cap)[0]


def _room(section: Section, budget: Budget) -> Budget:
    """Return what the heading path leaves of the budget."""
    spent = tokens.count(embed_text(_short_path(section.path, budget.cap // 4), ""))
    # Two tokens of slack: path and text together can count one more than apart.
    return Budget(max(budget.target - spent, budget.target // 2), budget.cap - spent - 2)


def _short_path(path: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the path, or first and last heading cut to size: a path never crowds out the text."""
    if tokens.fits(" > ".join(path), limit):
        return path
    ends = path if len(path) < 2 else (path[0], path[-1])
    return tuple(_cut_text(heading, limit // 2)[0] for heading in ends)


def pack(blocks: tuple[Block, ...], room: Budget) -> Iterator[str]:
    """Yield texts of whole blocks up to `room.target` tokens; a block over `room.cap` is cut where it hurts least."""
    group: list[Block] = []
    size = 0
    for block in _fitting(blocks, room.cap):
        cost = tokens.count(block.text) + 1
        if group and size + cost > room.target:
            yield join_blocks(group)
            group, size = [], 0
        group.append(block)
        size += cost
    if group:
        yield join_blocks(group)


def _fitting(blocks: tuple[Block, ...], cap: int) -> Iterator[Block]:
    """Yield the blocks, each over the cap replaced by pieces that fit, in order."""
    for block in blocks:
        if tokens.fits(block.text, cap):
            yield block
        elif block.parts:
            yield from _cut_container(block, cap)
        else:
            yield from _cut_leaf(block, cap)


def _cut_container(block: Block, cap: int) -> Iterator[Block]:
    """Cut between a container's parts; its title or label stands before each piece."""
    head = _short_head(block.head, cap)
    room = cap - tokens.count(head) - 2 if head else cap
    for text in pack(block.parts, Budget(room, room)):
        yield Block(block.kind, f"{head}\n\n{text}" if head else text)


def _cut_leaf(block: Block, cap: int) -> Iterator[Block]:
    """Cut at lines, with the fence or the table's header around each piece; prose at sentences, then at words."""
    head, tail = _short_head(block.head, cap), block.tail
    lines = block.text.split("\n")
    body = lines[head.count("\n") + 1 :] if head else lines
    if tail and body and body[-1] == tail:
        body = body[:-1]
    room = cap - tokens.count(f"{head}\n\n{tail}") - 2
    prose = block.kind not in (BlockKind.CODE, BlockKind.TABLE)
    for piece in _group_lines(body, room, prose):
        yield replace(block, text="\n".join(part for part in (head, piece, tail) if part))


def _short_head(head: str, cap: int) -> str:
    """Return the head, or nothing where repeating it would leave no room for what it stands over."""
    return head if tokens.fits(head, cap // 2) else ""


def _group_lines(lines: list[str], room: int, prose: bool) -> Iterator[str]:
    pieces: list[str] = []
    size = 0
    for line in lines:
        cost = tokens.count(line) + 1 if len(line) <= 8 * room else room + 1
        for part, part_cost in [(line, cost)] if cost <= room else _cut_line(line, room, prose):
            if pieces and size + part_cost > room:
                yield "\n".join(pieces)
                pieces, size = [], 0
            pieces.append(part)
            size += part_cost
    if pieces:
        yield "\n".join(pieces)


def _cut_line(line: str, room: int, prose: bool) -> Iterator[tuple[str, int]]:
    """Cut one line that alone is over the room: at sentence ends, else at spaces, else anywhere."""
    for sentence in _SENTENCE_END.split(line) if prose else [line]:
        for piece in _cut_text(sentence, room - 1):
            yield piece, tokens.count(piece) + 1


def _cut_text(text: str, limit: int) -> list[str]:
    """Return `text` in pieces of at most `limit` tokens, cut at spaces where there are any."""
    pieces: list[str] = []
    while text:
        # Tokens of ordinary text average four characters; one covers at least a byte, so the loop must end.
        size = min(len(text), 8 * limit)
        while not tokens.fits(text[:size], limit):
            size = max(1, size * 3 // 4)
        if size < len(text):
            space = text.rfind(" ", size // 2, size)
            size = space + 1 if space > 0 else size
        piece = text[:size].rstrip(" ") if size < len(text) else text
        if piece:
            pieces.append(piece)
        text = text[size:]
    return pieces or [""]
