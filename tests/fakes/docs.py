"""Small generated documentation sites, and an embedder that counts its calls."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chapterverse.embedding import Vector
from chapterverse.errors import TextTooLong
from chapterverse.model import (
    Block,
    BlockKind,
    Chunk,
    EmbedderCard,
    Page,
    Point,
    Scope,
    Section,
    Source,
    chunk_id,
    embed_hash,
)
from chapterverse.text.lexical import document_vector

SCOPE = Scope("docs")
BASE_URL = "https://docs.example/"

_WORDS = (
    "anchor archive block branch bucket build cache chapter chunk client cluster column commit config cookie cursor"
    " daemon database deploy digest docker domain editor endpoint engine export field filter folder gateway generator"
    " handler header hook image import index kernel label ledger lexer limit link loader locale lock logger macro"
    " manifest marker merge method module mount network nonce option origin output packet page panel parser patch path"
    " payload pipeline pixel plugin pointer policy port prefix prompt proxy query queue record region registry release"
    " render replica request reset route runtime schema scope script section segment server session setting shard"
    " signal site snapshot socket source stack stream string suffix table target template tenant theme thread ticket"
    " token trace tunnel update upload vector version volume webhook widget worker zone"
).split()


def prose(seed: object, words: int = 40) -> str:
    """Return sentences that depend on a seed only, and differ for nearly all other seeds."""
    chance = random.Random(repr(seed))
    return " ".join(chance.choice(_WORDS) for _ in range(words)).capitalize() + "."


def paragraph(text: str) -> Block:
    return Block(BlockKind.PARAGRAPH, text)


def section(name: str, *paragraphs: str, title: str = "Title") -> Section:
    return Section(name, 2, name.lower().replace(" ", "-"), (title, name), tuple(map(paragraph, paragraphs)))


def page(path: str, *sections: Section, title: str = "Title", language: str = "en", base: str = BASE_URL) -> Page:
    return Page(path, base + path.removesuffix(".md") + "/", title, language, sections)


def source(made: Page) -> Source:
    """Return a page as a source; its content hash covers everything but its address."""
    content = hashlib.sha256(repr((made.title, made.sections)).encode(errors="surrogatepass")).hexdigest()
    return Source(made.file_path, content, f"{made.url} {made.language}", lambda: made)


def point(name: str, text: str, *, dense: Sequence[float] | None = None, **fields: Any) -> Point:
    """Return a point whose id follows from its page and text."""
    chunk = Chunk(
        chunk_id=chunk_id(
            SCOPE, language="en", file_path=f"{name}.md", anchor=name, index=0, text=text, path=("Title", name)
        ),
        embed_hash=embed_hash("none/0", text),
        text=text,
        chapter_title="Title",
        section_heading=name,
        heading_path=("Title", name),
        chunk_index=0,
        source_file_path=f"{name}.md",
        url=f"{BASE_URL}{name}/#{name}",
        anchor_verified=True,
        source_domain="docs.example",
    )
    return Point(replace(chunk, **fields), document_vector((), text), None if dense is None else tuple(dense))


class CountingEmbedder:
    """Hashes texts to vectors, and records every text it embeds.

    Args:
        limit: characters above which a text is rejected; 0 for none.
    """

    price = 0.0

    def __init__(self, space: str = "counting", size: int = 4, limit: int = 0) -> None:
        self.card = EmbedderCard(f"counting:{space}", size, 0, space)
        self.seen: list[str] = []
        self._limit = limit

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        for position, text in enumerate(texts):
            if self._limit and len(text) > self._limit:
                raise TextTooLong(f"Text {position} is too long.", position=position)
        self.seen.extend(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        digest = hashlib.sha256(f"{self.card.space} {text}".encode()).digest()
        return tuple((byte + 1) / 256 for byte in digest[: self.card.size])
