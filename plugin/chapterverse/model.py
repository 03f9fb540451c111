"""The values that travel through the system. All are frozen.

A *page* is read into *sections*, one for each rendered heading. A section has *blocks*, which are packed into *chunks*.
A chunk with its vectors is a *point*. The *head* names the generation of points that readers see. The module is long
because each value stands with the form in which it is stored, and all of the library reads them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

#: Version of the stored format. A head with a higher one was written by a newer release and is rejected.
FORMAT = 1

#: Raise it when readers or the chunker give other output for the same input; every file is then read again.
READER = "reader/14"

#: Raise it when `text.lexical` gives a text another vector; an index of another encoder is written again.
ENCODER = "terms/2"

#: Most cl100k tokens of a chunk as embedded, and the size that chunks are packed to if no `chunk_tokens` is set.
MAX_CHUNK_TOKENS, TARGET_CHUNK_TOKENS = 512, 256

#: Namespace of our UUIDv5 chunk ids: the UUIDv5 of "chapterverse" in RFC 9562's URL namespace.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "chapterverse")

#: Types of chunks: page, the owner's persona, curated answer, fact. A persona is stored without vectors, so no search
#: can find it.
PAGE, PERSONA, FAQ, MEMORY = "page", "persona", "faq", "memory"

#: Types of documents: the index holds the first four, the database of conversations the others.
DOCUMENT_TYPES = (PAGE, PERSONA, FAQ, MEMORY, "turn", "summary")
INDEX_TYPES = DOCUMENT_TYPES[:4]

#: The name of an entity, such as an edition of the product, whose documents only a question that names it finds.
ENTITY = r"^\w(?:[\w .-]{0,62}[\w.-])?$"

#: The language of a persona's chunk, a private BCP 47 tag: a persona concerns answers in any language and adds no rules
#: for reading questions.
NO_LANGUAGE = "x-persona"

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


class BlockKind(StrEnum):
    """The kind of a block on the page. It decides how blocks are joined and where one may be cut."""

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
    """The smallest piece that a chunk keeps whole if it fits.

    Attributes:
        kind: the kind of the block on the page.
        text: the whole block as Markdown, never empty.
        head: lines that later pieces repeat if the block is cut: a fence's first line, a table's two header lines, an
            admonition's title, a tab's label.
        tail: last line of every piece: a fence's last line.
        parts: inner blocks of a container (admonition, tab, list item, definition …) in order; empty for a leaf. A
            container that doesn't fit is cut between its parts, with `head` before each piece.
        caption: the caption of a table, "" without one. It is also a paragraph before the table.
    """

    kind: BlockKind
    text: str
    head: str = ""
    tail: str = ""
    parts: tuple[Block, ...] = ()
    caption: str = ""


def join_blocks(blocks: Sequence[Block]) -> str:
    """Return the Markdown of blocks in sequence: list items on adjacent lines, others separated by a blank line."""
    out: list[str] = []
    for i, block in enumerate(blocks):
        if i:
            tight = block.kind is BlockKind.LIST_ITEM and blocks[i - 1].kind is BlockKind.LIST_ITEM
            out.append("\n" if tight else "\n\n")
        out.append(block.text)
    return "".join(out)


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a page that is no decoration.

    Attributes:
        src: the address as the page states it; a relative one starts from the page.
        alt: the text in place of the image, "" without one.
        title: the title attribute, "" without one.
    """

    src: str
    alt: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """The content under one rendered heading, up to the next one.

    Attributes:
        heading: the heading's text; None for the content before the first heading.
        level: 1 to 6; 0 without a heading.
        anchor: the heading's id in the page, raw (not percent-encoded); None if it has none.
        path: headings from the page title down to this one, inclusive.
        blocks: the content without the heading; empty if another heading follows at once.
        anchor_verified: whether the id was read from a built page, not computed from source.
        images: the images of the content, in order.
    """

    heading: str | None
    level: int
    anchor: str | None
    path: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    anchor_verified: bool = True
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One page of documentation as readers see it.

    Attributes:
        file_path: the path relative to the docs root, `/`-separated, at most 512 characters; identifies the page.
        url: the absolute address, percent-encoded, without a fragment.
        title: the chapter title.
        language: the BCP 47 tag of the language.
        created_at: the date that the page states, ISO 8601 UTC; None without one.
        facts: further fields of the chunks, which only documents beside the pages have.
        structured_data: the JSON-LD of the page, pruned (see `readers.html.metadata`).
    """

    file_path: str
    url: str
    title: str
    language: str
    sections: tuple[Section, ...]
    content_type: str = "documentation"
    tags: tuple[str, ...] = ()
    created_at: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    structured_data: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A page to index, which is read only if its content changed.

    Attributes:
        content_hash: the SHA-256 in hex of exactly the bytes that `read` parses.
        context: all other inputs of the page's payload (url, title, language, tags …) in one string; the page is also
            read again when it changes.
        read: the function that parses the page; it raises `InputError` if the page can't be read.
        type: the type of the chunks, one of `INDEX_TYPES`.
        url: the address of the page, without a fragment; "" if unknown before the page is read.
        language: the BCP 47 tag of the page; "" if unknown before the page is read.
    """

    file_path: str
    content_hash: str
    context: str
    read: Callable[[], Page]
    type: str = PAGE
    url: str = ""
    language: str = ""


def main_language(sources: Iterable[Source]) -> str:
    """Return the language of most of these pages, "en" if none states one."""
    languages = Counter(source.language for source in sources if source.language)
    return languages.most_common(1)[0][0] if languages else "en"


@dataclass(frozen=True, slots=True)
class Persona:
    """The style of the chat. It affects the wording only: code decides on citations and refusals.

    Attributes:
        name: the chat's name for itself; empty for none.
        language: BCP 47 tag of the answers if the pages are in it; empty for the reader's own.
        text: tone and rules in the owner's words, Markdown.
    """

    name: str = ""
    language: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A site in one docs version; each scope has one head."""

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
        """Return the weights of those terms that the vector contains; a question has far fewer terms than a text."""
        indices, weights = self.indices, {}
        for term in terms:
            at = bisect_left(indices, term)
            if at < len(indices) and indices[at] == term:
                weights[term] = self.values[at]
        return weights


@dataclass(frozen=True, slots=True)
class Chunk:
    """The payload of one point. `payload()` is its stored form. An optional text is "" if nothing states it.

    Attributes:
        chunk_id: the UUIDv5 that the function `chunk_id` returns.
        embed_hash: the key that the function `embed_hash` returns for `expanded_text`.
        text: the Markdown without the heading path; as embedded, at most `MAX_CHUNK_TOKENS` tokens.
        chapter_title: the title of the page.
        section_heading: the heading of the section, None for the content before the first heading.
        heading_path: the headings from the page title down to the section's, each shortened if it is long.
        chunk_index: the chunk's position on the page, from 0.
        source_file_path: the `file_path` of the page.
        url: the address of the section if the anchor is verified, else of the page.
        anchor_verified: whether the anchor was read from a built page, not computed from source.
        source_domain: the host of `url`.
        content_type: one of `page_kinds.CONTENT_TYPES`.
        type: one of `INDEX_TYPES`.
        tags: the tags of the page.
        language: the BCP 47 tag of the page's language.
        version: the version of the documentation, as in its `Scope`.
        created_at: the date that the page states, else the time of indexing; ISO 8601 UTC.
        timestamp: the time of the last write to an index; ISO 8601 UTC.
        scope: the audience of a document, "global" or "entity:NAME". The class `Scope` names an index instead.
        source: the origin of a document: "chat", "kb", "system" or "import".
        importance: the rank of a memory, 1 to 5.
        topic: the topic of a persona, a FAQ entry or a memory.
        specialist_name: the name of the specialist who answers a FAQ entry.
        entity: the entity of a memory (see `ENTITY`).
        conversation_id: the conversation in which a memory was stated.
        revision: the version that a persona file or a FAQ file states of itself.
        images: the images beside the text, each with `url` and `alt`, and with `title` if it has one.
        captions: a pair for each table in the text that has a caption: the table's first line, and the caption.
        structured_data: the page's JSON-LD, the same in each of its chunks.
        expansion: questions and keywords that a model wrote, one a line (see `enrichment`). Searches read them, readers
            never see them.
    """

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
    topic: str = ""
    specialist_name: str = ""
    entity: str = ""
    conversation_id: str = ""
    revision: str = ""
    images: tuple[Mapping[str, str], ...] = ()
    captions: tuple[tuple[str, str], ...] = ()
    structured_data: tuple[Mapping[str, Any], ...] = ()
    expansion: str = ""

    @property
    def embed_text(self) -> str:
        """The heading path, then the text, as readers of the page may see them."""
        return embed_text(self.heading_path, self.text)

    @property
    def expanded_text(self) -> str:
        """The text that is embedded and indexed: `embed_text`, then the expansion."""
        return f"{self.embed_text}\n\n{self.expansion}" if self.expansion else self.embed_text

    def payload(self) -> dict[str, Any]:
        """Return the JSON form for stores; `from_payload` is its inverse. Empty optional fields are left out."""
        values = ((name, getattr(self, name)) for name in self.__slots__)
        return {
            name: [list(item) if isinstance(item, tuple) else item for item in value]
            if isinstance(value, tuple)
            else value
            for name, value in values
            if value or name not in _OPTIONAL_FIELDS
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Chunk:
        names = _FIELDS.intersection(payload)
        values: dict[str, Any] = {k: payload[k] for k in names}
        for name in _LISTS & names:
            values[name] = tuple(tuple(item) if isinstance(item, list) else item for item in values[name])
        return cls(**values)

    def stamp(self, now: str) -> Chunk:
        """Return the chunk with its time of indexing (ISO 8601 UTC); a date stated by the page stays."""
        return replace(self, created_at=self.created_at or now, timestamp=now)


_FIELDS = frozenset(Chunk.__slots__)
#: Fields that only some chunks have, as those of documents beside the pages. They are absent when empty, so the export
#: of a site without them does not depend on this list.
_OPTIONAL_FIELDS = frozenset(
    "topic specialist_name entity conversation_id revision images captions structured_data expansion".split()
)
#: Tuple fields, which are lists in JSON.
_LISTS = frozenset({"heading_path", "tags", "images", "captions", "structured_data"})


def replace_unstorable(text: str) -> str:
    """Return text that every store and ledger accepts: NUL and lone surrogates become U+FFFD, as in HTML."""
    return _UNSTORABLE.sub("\ufffd", text)


def is_storable(value: object) -> bool:
    """Return whether a value, of JSON, holds only text that every store and ledger accepts."""
    if isinstance(value, str):
        return not _UNSTORABLE.search(value)
    if isinstance(value, Mapping):
        return all(is_storable(part) for item in value.items() for part in item)
    return not isinstance(value, (list, tuple)) or all(map(is_storable, value))


def slug(name: str) -> str:
    """Return the name of a site's index: letters and digits of any script, and hyphens."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", name).lower())
    return "-".join(words)[:64] or "site"


def utc_now(timespec: str = "seconds") -> str:
    """Return the time as ISO 8601 UTC, to the second or to what `datetime.isoformat` calls otherwise."""
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def stated_date(value: object) -> str | None:
    """Return a front matter's date as ISO 8601 UTC, None if it is invalid."""
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
    except OverflowError:  # a day near year 1 or 9999, in another zone
        return None


def embed_text(path: tuple[str, ...], text: str) -> str:
    """Return the text to embed for a chunk: "Title > Heading > Sub-heading", a blank line, the text."""
    return f"{' > '.join(path)}\n\n{text}"


def chunk_id(
    scope: Scope, *, language: str, file_path: str, anchor: str | None, index: int, text: str, path: tuple[str, ...]
) -> str:
    """Return a chunk's UUIDv5, which is the same on every machine and in every generation."""
    parts = (scope.site, scope.version, language, file_path, anchor or "", str(index), text, *path)
    # Length prefixes keep two lists of parts from having one name.
    return str(uuid.uuid5(NAMESPACE, "".join(f"{len(p)}:{p}" for p in parts)))


def embed_hash(fingerprint: str, text_as_embedded: str) -> str:
    """Return the key for reusing a vector: SHA-256 of the embedder's fingerprint and the embedded text."""
    return hashlib.sha256(f"{fingerprint}\n{text_as_embedded}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Point:
    """A chunk with its vectors: `lexical` always, `dense` when the index has an embedder."""

    chunk: Chunk
    lexical: SparseVector
    dense: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class EmbedderCard:
    """The properties of the embedder that an index records.

    Attributes:
        name: the name as configured, "cohere:embed-english-v3.0"; "none" for an index without dense vectors.
        size: the number of dimensions; 0 without dense vectors.
        limit: the most tokens of one text by the embedder's own count; 0 for no limit.
        space: the name of the vector space; models that share one can read each other's index.
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
    """The manifest of one generation. It alone decides what readers see.

    Attributes:
        generation: the number of this publication of the scope, from 1.
        token: a random text that tells this publication from others with the same number.
        pipeline: the fingerprint of the reader, chunker and embedder settings that made the chunks.
        calibration: the coefficients of evidence (see `calibration.Calibration`).
        languages: the BCP 47 tags of the pages; a question is read by the rules of each.
        fusion_weight: the share of the dense score in the linear fusion, 0 to 1; `calibrate` measures it. The default
            found the right section most often with MiniLM (ray-v1: SecHit@5 .614, and .586 by words alone).
        base_url: the site's published address; `serve` and the demo rewrite it to their own origin.
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

    @property
    def main_language(self) -> str:
        """The language of a text of the index that states none; an index without any text has no language."""
        return self.languages[0] if self.languages else "en"
