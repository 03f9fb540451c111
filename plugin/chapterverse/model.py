"""The values that travel through the system. All are frozen.

A *page* is read into *sections*, each under one rendered heading; a section holds *blocks*; blocks are packed into
*chunks*; a chunk with its vectors is a *point*; the *head* names the generation of points that readers see.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

#: Version of the stored format; a head with a higher one was written by a newer release and is refused.
FORMAT = 1

#: Namespace of our UUIDv5 chunk ids: the UUIDv5 of "chapterverse" in RFC 9562's URL namespace.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "chapterverse")

#: The two types of chunks that a build makes: of a page, and of what the owner tells the chat of itself. A persona is
#: stored like a page, but without vectors: nothing that is searched for, in whatever store, can ever find it.
PAGE, PERSONA = "page", "persona"

#: The language of a persona's chunk, a private tag of BCP 47: it speaks about answers in any language, and is no reason
#: to read a question by the rules of one more.
NO_LANGUAGE = "x-persona"

_UNSOUND = re.compile(r"[\x00\ud800-\udfff]")


class BlockKind(StrEnum):
    """What a block was on the page; it decides how blocks are joined and where one may be cut."""

    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    CODE = "code"
    TABLE = "table"
    QUOTE = "quote"
    ADMONITION = "admonition"
    TAB = "tab"
    DEFINITION = "definition"
    FOOTNOTE = "footnote"


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest piece that a chunk keeps whole when it fits.

    Attributes:
        kind: what it was on the page.
        text: the whole block as Markdown, never empty.
        head: what a later piece must repeat when the block is cut: a fence's first line, a table's two header lines,
            an admonition's title, a tab's label.
        tail: what every piece must end with: a fence's last line.
        parts: inner blocks of a container (admonition, tab, list item, definition …) in order; empty for a leaf. A
            container that doesn't fit is cut between its parts, and `head` stands before each piece.
    """

    kind: BlockKind
    text: str
    head: str = ""
    tail: str = ""
    parts: tuple[Block, ...] = ()


def join_blocks(blocks: Sequence[Block]) -> str:
    """Return the Markdown of blocks in sequence: list items stand on adjacent lines, all else a blank line apart."""
    out: list[str] = []
    for i, block in enumerate(blocks):
        if i:
            tight = block.kind is BlockKind.LIST_ITEM and blocks[i - 1].kind is BlockKind.LIST_ITEM
            out.append("\n" if tight else "\n\n")
        out.append(block.text)
    return "".join(out)


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one rendered heading, up to the next one.

    Attributes:
        heading: the heading's text; None for what stands before the first heading.
        level: 1 to 6; 0 where `heading` is None.
        anchor: the id that the heading has in the page, raw (not percent-encoded); None if it has none.
        path: headings from the page title down to this one, inclusive.
        blocks: its content without the heading; empty for a heading that is followed by another heading at once.
        anchor_verified: the id was seen in a built page, not computed from source.
    """

    heading: str | None
    level: int
    anchor: str | None
    path: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    anchor_verified: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """One page of documentation as its reader sees it.

    Attributes:
        file_path: relative to the docs root, `/`-separated, at most 512 characters: the page's identity.
        url: absolute, percent-encoded, without a fragment.
        title: the chapter title.
        language: BCP 47 tag.
        created_at: ISO 8601 UTC, where the page states a date.
    """

    file_path: str
    url: str
    title: str
    language: str
    sections: tuple[Section, ...]
    content_type: str = "documentation"
    tags: tuple[str, ...] = ()
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A page that a build offers: cheap to hold, read only when its content changed.

    Attributes:
        content_hash: SHA-256 in hex of exactly the bytes that `read` will parse.
        context: all else that decides the page's payload (url, title, language, tags …) in one string; when it changes
            the page is read again, though its content is the same.
        read: parses the page; raises `InputError` if it can't be read.
        type: of its chunks, `PAGE` or `PERSONA`.
    """

    file_path: str
    content_hash: str
    context: str
    read: Callable[[], Page]
    type: str = PAGE


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """One head: a site in one docs version."""

    site: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.site} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights: `indices` are hashed terms (unsigned 32 bit, ascending, unique), `values` positive and finite."""

    indices: tuple[int, ...]
    values: tuple[float, ...]

    def among(self, terms: Iterable[int]) -> dict[int, float]:
        """Return the weights of those of the terms that it holds; a question has far fewer than a text."""
        indices, held = self.indices, {}
        for term in terms:
            at = bisect_left(indices, term)
            if at < len(indices) and indices[at] == term:
                held[term] = self.values[at]
        return held


@dataclass(frozen=True, slots=True)
class Chunk:
    """The payload of one point in a store; `payload()` is its stored form."""

    chunk_id: str
    embed_hash: str
    text: str
    chapter_title: str
    section_heading: str | None
    heading_path: tuple[str, ...]
    chunk_index: int
    source_file_path: str
    url: str
    anchor_verified: bool
    source_domain: str
    content_type: str = "documentation"
    type: str = PAGE
    tags: tuple[str, ...] = ()
    language: str = "en"
    version: str = ""
    created_at: str = ""
    timestamp: str = ""
    scope: str = "global"
    source: str = "kb"
    importance: int = 3

    @property
    def embed_text(self) -> str:
        """The text as embedded and indexed: the heading path first, then the chunk."""
        return embed_text(self.heading_path, self.text)

    def payload(self) -> dict[str, Any]:
        """Return the JSON form that stores keep; `from_payload` is its inverse."""
        values = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Chunk:
        known = _FIELDS.intersection(payload)
        values: dict[str, Any] = {k: payload[k] for k in known}
        for name in _LISTS & known:
            values[name] = tuple(values[name])
        return cls(**values)

    def stamped(self, now: str) -> Chunk:
        """Return the chunk with its time of indexing (ISO 8601 UTC); a date that the page stated is kept."""
        return replace(self, created_at=self.created_at or now, timestamp=now)


_FIELDS = frozenset(Chunk.__slots__)
#: Fields of more than one value; JSON knows no tuples.
_LISTS = frozenset({"heading_path", "tags"})


def sound(text: str) -> str:
    """Return text as every store and ledger can hold it: NUL and lone surrogates become U+FFFD, as in HTML."""
    return _UNSOUND.sub("\ufffd", text)


def slug(name: str) -> str:
    """Return a site's name as the name of its index: letters and digits of any script, and hyphens."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", name).lower())
    return "-".join(words)[:64] or "site"


def utc_now() -> str:
    """Return the time as ISO 8601 UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def stated_date(value: object) -> str | None:
    """Return a front matter's date as ISO 8601 UTC; None for what is no date."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        return None
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return aware.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except OverflowError:  # a day at the end of all time, in another zone
        return None


def embed_text(path: tuple[str, ...], text: str) -> str:
    """Return what is embedded for a chunk: "Title > Heading > Sub-heading", a blank line, the text."""
    return f"{' > '.join(path)}\n\n{text}"


def chunk_id(
    scope: Scope, language: str, file_path: str, anchor: str | None, index: int, text: str, path: tuple[str, ...]
) -> str:
    """Return the UUIDv5 of a chunk: the same on every machine, whatever the host, the time or the generation."""
    parts = (scope.site, scope.version, language, file_path, anchor or "", str(index), text, *path)
    # Length-prefixed, so that no two lists of parts share one name.
    return str(uuid.uuid5(NAMESPACE, "".join(f"{len(p)}:{p}" for p in parts)))


def embed_hash(fingerprint: str, text_as_embedded: str) -> str:
    """Return the key by which a vector is reused: SHA-256 over the embedder's fingerprint and the text it saw."""
    return hashlib.sha256(f"{fingerprint}\n{text_as_embedded}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Point:
    """A chunk with its vectors: `lexical` always, `dense` when the index has an embedder."""

    chunk: Chunk
    lexical: SparseVector
    dense: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class EmbedderCard:
    """What an index must remember of the embedder that filled it.

    Attributes:
        name: as configured, "cohere:embed-english-v3.0"; "none" for an index without dense vectors.
        size: dimensions; 0 for none.
        limit: tokens that one text may have by the embedder's own count; 0 if it has no limit of its own.
        space: names the vector space, so that two models that share one may read each other's index.
    """

    name: str = "none"
    size: int = 0
    limit: int = 0
    space: str = "none"

    @property
    def fingerprint(self) -> str:
        return f"{self.space}/{self.size}"


@dataclass(frozen=True, slots=True)
class Head:
    """The manifest of one generation, the only truth about what readers see.

    Attributes:
        generation: counts publications of this scope from 1.
        token: tells this publication from every other one with the same number, in whatever index.
        pipeline: fingerprint of reader, chunker and embedder settings that made the chunks.
        calibration: fitted evidence parameters (see `evidence.Calibration`), kept with the index they describe.
        languages: BCP 47 tags of the pages; a question is read by the rules of each.
        fusion_weight: share of the dense score in the linear fusion, 0 to 1; `calibrate` measures it. With MiniLM .3
            found the right section most often (ray-v1: SecHit@5 .614, and .586 by words alone).
        base_url: the site's address as published; `serve` and the demo rewrite it to their own origin.
    """

    site: str
    version: str
    generation: int
    pages: int
    chunks: int
    pipeline: str
    embedder: EmbedderCard = field(default_factory=EmbedderCard)
    languages: tuple[str, ...] = ("en",)
    calibration: Mapping[str, Any] = field(default_factory=dict)
    fusion_weight: float = 0.3
    base_url: str = ""
    published_at: str = ""
    token: str = ""
    format: int = FORMAT

    @property
    def scope(self) -> Scope:
        return Scope(self.site, self.version)
