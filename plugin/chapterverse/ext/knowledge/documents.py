"""Reads the persona, FAQ and memory files into pages of the index: Markdown with front matter, kept word for word."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from chapterverse.errors import UnreadablePage
from chapterverse.ext.knowledge.entries import to_text
from chapterverse.ext.knowledge.metadata import PersonaMetadata, validate_metadata
from chapterverse.model import (
    FAQ,
    MAX_CHUNK_TOKENS,
    NO_LANGUAGE,
    PERSONA,
    Block,
    BlockKind,
    Page,
    Persona,
    Section,
    embed_text,
)
from chapterverse.readers.folder import decode_page, read_page
from chapterverse.readers.front_matter import split_values
from chapterverse.readers.html.visible_text import collapse, strip_invisible
from chapterverse.readers.site_pages import require_unchanged
from chapterverse.text import tokens
from chapterverse.text.tokens import ellipsize

#: Most characters of a question: that of a question to the chat.
_MAX_QUESTION_CHARS = 4000
#: Characters that more than fill a chunk, so nothing needs to be counted.
_MAX_CHARS = 100 * MAX_CHUNK_TOKENS

# An unclosed comment hides the rest, like in a built page.
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ANCHOR = re.compile(r"\{[:#][^{}]*\}\s*$")
_CODE = ("fence", "code_block")
_MAX_NESTED_COMMENTS = 10
#: Most cl100k tokens, because it is sent with every question.
MAX_FILE_TOKENS = 400
#: A file of more bytes certainly has more tokens.
_MAX_BYTES = 100_000
#: Most characters of a name.
_MAX_NAME_CHARS = 60
_TITLE = "Persona"
_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A question with its answer, or a title with a fact. The text is Markdown as written, without comments."""

    heading: str
    text: str


def read_knowledge(
    folder: Path, name: str, *, kind: str, content_hash: str, path: str, url: str = "", language: str
) -> Page:
    """Return a file as a page for the index; each of its entries becomes a chunk.

    Args:
        name: of the file below `folder`.
        kind: `model.FAQ` or `model.MEMORY`.
        path: its path in the index and in messages.
        url: address of the page that it names; empty if it names none.
        language: of the site; front matter takes precedence.

    Raises:
        UnsafePath: the file is a link out of its folder, a pipe or a device.
        UnreadablePage: it is no text, changed since it was hashed, its front matter can't be read, or it holds no
            question, a question without an answer, or more than fits into a chunk.
        InputError: a field of its front matter is invalid.
    """
    content = read_page(folder, name, path)
    require_unchanged(path, content_hash, hashlib.sha256(content).hexdigest())
    values, below = split_values(decode_page(path, content).replace("\r\n", "\n"), path, rejected=object)
    about = validate_metadata(kind, values or {}, path)
    text = without_comments(strip_invisible(below))
    title = Path(name).stem.replace("-", " ").replace("_", " ").strip().capitalize() or kind
    if kind == FAQ:
        title, entries = read_faq(text, path, title)
    else:
        entries = [DocumentEntry(title, text.strip())]
    sections = tuple(_section(title, entry, path, kind) for entry in entries)
    created_at = about.timestamp if "timestamp" in about.model_fields_set else None
    return Page(
        path,
        url,
        title,
        about.language or language,
        sections,
        content_type="faq" if kind == FAQ else "other",
        tags=getattr(about, "tags", ()),
        created_at=created_at,
        facts=_facts(about),
    )


def read_faq(text: str, path: str, title: str) -> tuple[str, list[DocumentEntry]]:
    """Return the title of a FAQ file and its entries. A heading without a text above a deeper one is no question.

    Args:
        title: of a file that begins with a question.

    Raises:
        UnreadablePage: there is no question, one has no answer, or a text has no question.
    """
    lines = text.split("\n")
    headings = [*_headings(text), (len(lines), len(lines), 0, "")]
    if "".join(lines[: headings[0][0]]).strip():
        raise UnreadablePage(f"{path}: the text above the first heading answers no question: write one above it.")
    entries: list[DocumentEntry] = []
    for (_, start, level, heading), (end, _, following, _) in pairwise(headings):
        answer = "\n".join(lines[start:end]).strip()
        if answer:
            entries.append(DocumentEntry(heading, answer))
        elif following > level:
            title = title if entries else heading
        else:
            raise UnreadablePage(f"{path}: the question {_quote(heading)} has no answer: write one below it.")
    if not entries:
        raise UnreadablePage(f"{path} holds no question: write each as a heading, and its answer below it.")
    return title, entries


def without_comments(text: str) -> str:
    """Return Markdown without HTML comments; code keeps them."""
    if "<!--" not in text:
        return text
    lines = text.split("\n")
    code = [t.map for t in MarkdownIt("commonmark").parse(text) if t.type in _CODE and t.map]
    parts, at = [], 0
    for start, end in code:
        parts += [_COMMENT.sub("", "\n".join(lines[at:start])), "\n".join(lines[start:end])]
        at = end
    rest = "\n".join(lines[at:])
    # Removing a comment may join the parts of another one; nobody writes many in one another.
    for _ in range(_MAX_NESTED_COMMENTS):
        rest = _COMMENT.sub("", rest)
    return "\n".join([*parts, rest])


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield each heading that is in no list or quote: its first line, the line behind it, its level and its text."""
    syntax = MarkdownIt("commonmark").parse(text)
    for opening, inline in pairwise(syntax):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            words = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
            yield opening.map[0], opening.map[1], int(opening.tag[1:]), collapse(_ANCHOR.sub("", words))


def _section(title: str, entry: DocumentEntry, path: str, kind: str) -> Section:
    if not entry.text:
        raise UnreadablePage(f"{path} holds no fact: write one, or remove the file.")
    if not entry.heading or len(entry.heading) > _MAX_QUESTION_CHARS:
        raise UnreadablePage(f"{path}: a question must hold 1 to {_MAX_QUESTION_CHARS} characters.")
    headings = tuple(dict.fromkeys((title, entry.heading)))
    if len(entry.text) > _MAX_CHARS or not tokens.fits(embed_text(headings, entry.text), MAX_CHUNK_TOKENS):
        if kind == FAQ:
            raise UnreadablePage(
                f"{path}: the answer to {_quote(entry.heading)} is longer than {MAX_CHUNK_TOKENS} tokens with its "
                "question: shorten it, and link to a page."
            )
        raise UnreadablePage(f"{path} is longer than {MAX_CHUNK_TOKENS} tokens: write one fact a file.")
    block = Block(BlockKind.PARAGRAPH, entry.text)
    return Section(entry.heading, len(headings), None, headings, (block,), anchor_verified=False)


def _facts(about: Any) -> Mapping[str, Any]:
    names = ("scope", "source", "importance", "topic", "specialist_name", "entity", "conversation_id", "revision")
    return {name: value for name in names if (value := getattr(about, name, None)) is not None}


def _quote(text: str) -> str:
    return f"“{ellipsize(text, 60)}”"


def read_persona_page(file: Path, content_hash: str, path: str, url: str) -> Page:
    """Return the persona as a page for the index.

    Raises:
        UnsafePath: the file is a link out of its folder, a pipe or a device.
        UnreadablePage: it changed since it was hashed, or `read_persona` rejects it.
    """
    content = read_page(file.parent, file.name)
    require_unchanged(file.name, content_hash, hashlib.sha256(content).hexdigest())
    persona, about = read_persona(file.name, content)
    text = to_text(persona)
    section = Section(None, 0, None, (_TITLE,), (Block(BlockKind.PARAGRAPH, text),), anchor_verified=False)
    facts = {**_facts(about), **({"revision": about.version} if about.version else {})}
    return Page(path, url, _TITLE, NO_LANGUAGE, (section,), content_type="other", facts=facts)


def read_persona(name: str, content: bytes) -> tuple[Persona, PersonaMetadata]:
    """Return the persona of a file, without comments and hidden characters, and what the file states beside it.

    Args:
        name: of the file, for error messages.

    Raises:
        UnreadablePage: it is binary, in a wrong encoding, empty, too long, or its front matter is invalid.
        InputError: a field of its front matter is unknown or invalid.
    """
    if len(content) > _MAX_BYTES:
        raise _too_long(name)
    values, below = split_values(decode_page(name, content).replace("\r\n", "\n"), name, rejected=list)
    text = _without_all_comments(strip_invisible(below)).strip()
    persona = Persona(_name(values or {}, name), _language(values or {}, name), text)
    # Name and language were read above, with more patience than the model has.
    other_fields = {key: value for key, value in (values or {}).items() if key not in ("name", "language")}
    about: PersonaMetadata = validate_metadata(PERSONA, other_fields, name)
    if persona == Persona():
        raise UnreadablePage(f"{name} says nothing: write how the chat shall speak, or remove the file.")
    if not tokens.fits(to_text(persona), MAX_FILE_TOKENS):
        raise _too_long(name)
    return persona, about


def _too_long(file: str) -> UnreadablePage:
    return UnreadablePage(
        f"{file} is longer than {MAX_FILE_TOKENS} tokens and is sent with every question: shorten it."
    )


def _without_all_comments(text: str) -> str:
    # Removing a comment may join the parts of another one.
    while _COMMENT.search(text):
        text = _COMMENT.sub("", text)
    return text


def _name(values: Mapping[Any, Any], file: str) -> str:
    value = values.get("name")
    name = collapse(strip_invisible(str(value))) if isinstance(value, str | int | float) else ""
    if (value is not None and not name) or len(name) > _MAX_NAME_CHARS:
        raise UnreadablePage(f"The name in {file} must be a text of 1 to {_MAX_NAME_CHARS} characters.")
    return name


def _language(values: Mapping[Any, Any], file: str) -> str:
    value = values.get("language")
    if value is None:
        return ""
    # YAML reads the tag of Norwegian as false.
    tag = "no" if value is False else str(value).strip().replace("_", "-")
    if not _TAG.fullmatch(tag):
        raise UnreadablePage(f"The language in {file} must be a tag like en or pt-BR.")
    return tag
