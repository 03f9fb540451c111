"""Packs blocks into small chunks under a hard cap. A block that fits is never cut.

The cap counts cl100k tokens of the embedded text (heading path and text) exactly. The target decides only where a text
ends, so it is estimated at 3.6 bytes a token; tokens are counted only where bytes can't prove the cap. A target of 256
under a cap of 512 is measured: small chunks find the right section more often than large ones, and the answer is
expanded to its section anyway.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from urllib.parse import urljoin, urlsplit

from chapterverse.model import (
    MAX_CHUNK_TOKENS,
    PAGE,
    TARGET_CHUNK_TOKENS,
    Block,
    BlockKind,
    Chunk,
    Image,
    Page,
    Scope,
    Section,
    chunk_id,
    embed_hash,
    embed_text,
    join_blocks,
    replace_unstorable,
)
from chapterverse.text import tokens
from chapterverse.text.tokens import PROSE_TOKEN_BYTES

#: Share of the target from which a text may end. A paragraph inserted into the longest section of 80 pages, which the
#: repository does not hold, changed 1.4 texts with content-defined borders and 1.6 without (at most 3 and 4).
_FULL_ENOUGH = 0.25
#: Tokens that a repeated head must leave for each piece, however small the cap.
_MIN_ROOM_TOKENS = 16
#: Most images of a chunk; their addresses and texts can be many times as long as its text.
_MAX_IMAGES = 10
#: Most captions of a section's tables.
_MAX_CAPTIONS = 50
#: Containers nested deeper are cut at lines, like blocks without parts.
_MAX_DEPTH = 20

#: What the second line of each table holds.
_RULE = "| --- |"

_BLANK_START = re.compile(r"\A\s*[\r\n]")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Chunk sizes in cl100k tokens of path and text together.

    Attributes:
        target: packing stops before this size, at 3.6 bytes a token.
        cap: hard limit of every chunk. A path longer than a quarter of it is shortened in the middle.
    """

    target: int = TARGET_CHUNK_TOKENS
    cap: int = MAX_CHUNK_TOKENS

    @property
    def fingerprint(self) -> str:
        return f"chunks/{self.target}/{self.cap}"

    def smaller(self) -> ChunkSizes:
        """Return three quarters of it, at least 16 and 32, for a page with a text that a model rejected as too long."""
        return ChunkSizes(max(16, self.target * 3 // 4), max(32, self.cap * 3 // 4))


def chunk(
    page: Page, scope: Scope, fingerprint: str, sizes: ChunkSizes = ChunkSizes(), kind: str = PAGE
) -> list[Chunk]:
    """Cut a page into chunks, in reading order.

    Args:
        page: a reader's output.
        scope: site and docs version, part of each chunk's id.
        fingerprint: the embedder's, part of each chunk's `embed_hash`.
        sizes: target and cap.
        kind: the chunks' type.
    """
    chunks: list[Chunk] = []
    title, url, domain = replace_unstorable(page.title), replace_unstorable(page.url), _host(page.url)
    tags = tuple(map(replace_unstorable, page.tags))
    for section, path, texts in _cut_sections(page.sections, sizes):
        anchor = replace_unstorable(section.anchor) if section.anchor else None
        cited = anchor if section.anchor_verified else None
        images = _place_images(section, texts, page.url)
        captions = _captions(section) if any(_RULE in text for text in texts) else []
        for position, text in enumerate(texts):
            chunks.append(
                Chunk(
                    chunk_id=chunk_id(
                        scope,
                        language=page.language,
                        file_path=page.file_path,
                        anchor=anchor,
                        index=len(chunks),
                        text=text,
                        path=path,
                    ),
                    embed_hash=embed_hash(fingerprint, embed_text(path, text)),
                    text=text,
                    chapter_title=title,
                    section_heading=replace_unstorable(section.heading) if section.heading else None,
                    heading_path=path,
                    chunk_index=len(chunks),
                    source_file_path=page.file_path,
                    url=f"{url}#{cited}" if cited else url,
                    anchor_verified=cited is not None,
                    source_domain=domain,
                    content_type=page.content_type,
                    type=kind,
                    tags=tags,
                    language=page.language,
                    version=scope.version,
                    created_at=page.created_at or "",
                    images=tuple(images.get(position, ())),
                    captions=tuple(pair for pair in captions if pair[0] in text) if _RULE in text else (),
                    structured_data=page.structured_data,
                    **page.facts,
                )
            )
    return chunks


def _place_images(section: Section, texts: Sequence[str], url: str) -> dict[int, list[dict[str, str]]]:
    """Return the images of a section by the position of their text: the first that holds an image's alternative text,
    or else the first.
    """
    placed: dict[int, list[dict[str, str]]] = {}
    for image in section.images if texts else ():
        at = next((i for i, text in enumerate(texts) if image.alt and image.alt in text), 0)
        described = _image(image, url)
        if described and len(placed.setdefault(at, [])) < _MAX_IMAGES:
            placed[at].append(described)
    return placed


def _image(image: Image, url: str) -> dict[str, str]:
    """Return an image as a chunk stores it; nothing if it has no address on the web."""
    with contextlib.suppress(ValueError):
        address = urljoin(url, image.src)
        if urlsplit(address).scheme.lower() in ("http", "https"):
            title = {"title": replace_unstorable(image.title)} if image.title else {}
            return {"url": replace_unstorable(address), "alt": replace_unstorable(image.alt), **title}
    return {}


def _captions(section: Section) -> list[tuple[str, str]]:
    """Return first line and caption of a section's tables that have one, of many the first ones."""
    captions: dict[str, str] = {}
    rest = list(reversed(section.blocks))
    while rest and len(captions) < _MAX_CAPTIONS:
        block = rest.pop()
        rest.extend(reversed(block.parts))
        if block.caption:
            captions[replace_unstorable(block.head.partition("\n")[0])] = replace_unstorable(block.caption)
    return sorted(captions.items())


def _host(url: str) -> str:
    with contextlib.suppress(ValueError):
        return replace_unstorable(urlsplit(url).hostname or "")
    return ""


def _cut_sections(
    sections: Sequence[Section], sizes: ChunkSizes
) -> Iterator[tuple[Section, tuple[str, ...], list[str]]]:
    """Yield each section with its path and the texts of its chunks.

    If the path had to be shortened, the first text starts with the heading. An empty heading without subsections is its
    own text.
    """
    paths = [_short_path(tuple(map(replace_unstorable, section.path)), sizes.cap // 4) for section in sections]
    for section, path, following in zip(sections, paths, [*paths[1:], ()], strict=False):
        room = _room(path, sizes)
        heading = Block(BlockKind.PARAGRAPH, replace_unstorable(section.heading or ""))
        is_heading_in_path = not section.heading or heading.text in path
        texts = list(_pack_blocks(section.blocks if is_heading_in_path else (heading, *section.blocks), room))
        if not texts and not (len(following) > len(path) and following[: len(path)] == path):
            texts = list(_pack_blocks((heading,), room))
        yield section, path, texts


def _room(path: tuple[str, ...], sizes: ChunkSizes) -> ChunkSizes:
    """Return what the heading path leaves of the sizes.

    Path and text count the same separately and together: cl100k splits words after a blank line unless more blank lines
    follow, and no text starts with one.
    """
    spent = tokens.count(embed_text(path, ""))
    return ChunkSizes(max(sizes.target - spent, sizes.target // 2), sizes.cap - spent)


def _short_path(path: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the path, or its first and last heading cut to size: a path must never crowd out the text."""
    if tokens.fits(" > ".join(path), limit):
        return path
    ends = path if len(path) < 2 else (path[0], path[-1])
    return tuple(next(_cut_text(heading, limit // 2), "") for heading in ends)


def _pack_blocks(blocks: Iterable[Block], room: ChunkSizes, depth: int = 0) -> Iterator[str]:
    """Yield texts of whole blocks up to about `room.target` tokens, none over `room.cap`.

    Groups denser than the estimate are packed again at half the target. A block over the cap is cut between its parts
    or lines.

    Args:
        depth: number of enclosing containers.
    """
    whole = [trimmed for block in blocks if (trimmed := _trim_block(block)).text]
    for group in _groups(whole, int(room.target * PROSE_TOKEN_BYTES)):
        text = join_blocks(group)
        if tokens.fits(text, room.cap):
            yield text
        elif len(group) > 1:
            yield from _pack_blocks(group, replace(room, target=room.target // 2), depth)
        elif group[0].parts and depth < _MAX_DEPTH:
            yield from _cut_container(group[0], room.cap, depth)
        else:
            yield from _cut_leaf(group[0], room.cap)


def _trim_block(block: Block) -> Block:
    """Return the block without surrounding blank lines and characters that stores reject."""
    text = _trim(replace_unstorable(block.text))
    if text == block.text:
        return block
    return replace(block, text=text, head=replace_unstorable(block.head), tail=replace_unstorable(block.tail))


def _trim(text: str) -> str:
    """Return the text without leading blank lines and trailing white space. The first line stays indented."""
    return (_BLANK_START.sub("", text) if text[:1].isspace() else text).rstrip()


def _groups(blocks: Sequence[Block], target: int) -> Iterator[Sequence[Block]]:
    """Yield blocks in groups of at most `target` bytes; a larger block is a group of its own.

    If the blocks fill more than two texts, borders are content-defined: an insertion moves no later border, so a
    paragraph added at the top of a long section changes a text or two and not all of them.
    """
    # With the blank line after each.
    sizes = [len(block.text.encode()) + 2 for block in blocks]
    chosen = sum(sizes) > 2 * target
    start = size = 0
    for end, added in enumerate(sizes):
        size += added
        while size > target and start < end:
            cut = start + _border(blocks[start : end + 1], sizes[start:end], target) if chosen else end
            yield blocks[start:cut]
            start = cut
            size = sum(sizes[start : end + 1])
    if blocks:
        yield blocks[start:]


def _border(blocks: Sequence[Block], sizes: Sequence[int], target: int) -> int:
    """Return the index of the block that starts the next group: after a full enough text, the block with the smallest
    hash.

    Args:
        sizes: of all blocks but the last.
    """
    borders = [i for i, size in enumerate(accumulate(sizes), 1) if target * _FULL_ENOUGH <= size <= target]
    return min(borders, key=lambda i: hashlib.sha256(blocks[i].text.encode()).digest(), default=len(sizes))


def _cut_container(block: Block, cap: int, depth: int) -> Iterator[str]:
    """Cut between a container's parts and repeat its title before each piece; a long title appears only once."""
    head = block.head.strip()
    if head and not _repeats(head, cap):
        yield from _cut_leaf(Block(block.kind, head), cap)
        head = ""
    room = cap - tokens.count(f"{head}\n\n") if head else cap
    for text in _pack_blocks(block.parts, ChunkSizes(room, room), depth + 1):
        yield f"{head}\n\n{text}" if head else text


def _cut_leaf(block: Block, cap: int) -> Iterator[str]:
    """Cut at lines and repeat the fence or table header around each piece. Cut long lines at sentences or words."""
    head, tail, body = "", "", block.text
    if block.head and block.text.startswith(f"{block.head}\n") and _repeats(f"{block.head}\n{block.tail}", cap):
        head, tail = block.head, block.tail
        body = body.removeprefix(f"{head}\n").removesuffix(f"\n{tail}" if tail else "")
    lines = body.split("\n")
    room = cap - tokens.count(f"{head}\n\n{tail}") if head else cap
    pieces = _frame(head, _group_lines(lines, room), tail)
    # Joining lines may add tokens.
    while not all(tokens.fits(piece, cap) for piece in pieces):
        room -= 1
        pieces = _frame(head, _group_lines(lines, room), tail)
    yield from pieces


def _repeats(head: str, cap: int) -> bool:
    """Whether a head leaves enough room to be repeated over every piece."""
    return tokens.fits(head, cap - max(cap // 2, _MIN_ROOM_TOKENS))


def _frame(head: str, pieces: Iterable[str], tail: str) -> list[str]:
    return ["\n".join(part for part in (head, piece, tail) if part) for piece in pieces]


def _group_lines(lines: Iterable[str], room: int) -> Iterator[str]:
    """Yield lines in groups of at most `room` tokens, counted line by line. Drop groups of blank lines."""
    group: list[str] = []
    size = 0
    for line in lines:
        for part in (line,) if tokens.fits(line, room - 1) else _cut_text(line, room - 1):
            cost = tokens.count(part) + 1
            if group and size + cost > room:
                yield from _unblank(group)
                group, size = [], 0
            group.append(part)
            size += cost
    yield from _unblank(group)


def _unblank(lines: Sequence[str]) -> Iterator[str]:
    text = _trim("\n".join(lines))
    if text:
        yield text


def _cut_text(text: str, limit: int) -> Iterator[str]:
    """Yield pieces of at most `limit` (at least 4) tokens, cut after a sentence, else a word, else anywhere."""
    at = 0
    while at < len(text):
        end = at + _longest_prefix(text, at, limit)
        if end < len(text):
            end = _gap(text, at, end)
        piece = text[at:end].rstrip()
        if piece:
            yield piece
        at = end
        # Drop spaces at the cut; a word's tokens differ without the space before it.
        while at < len(text) and text[at] == " ":
            at += 1


def _longest_prefix(text: str, start: int, limit: int) -> int:
    """Return how many characters from `start` have at most `limit` tokens, close to the maximum."""
    size = min(len(text) - start, 8 * limit)
    while (count := tokens.count(text[start : start + size])) > limit:
        size = max(1, min(size - 1, size * limit // count))
    return size


def _gap(text: str, start: int, end: int) -> int:
    """Return where to cut: after the last sentence or word that ends in the second half, else at `end`."""
    middle = (start + end) // 2
    ends = [match.end() for match in _SENTENCE_END.finditer(text, middle, end)]
    if ends:
        return ends[-1]
    return text.rfind(" ", middle, end + 1) + 1 or end
