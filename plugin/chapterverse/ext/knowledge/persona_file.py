"""Reads `persona.md` into a page of the index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chapterverse.errors import UnreadablePage
from chapterverse.ext.knowledge.metadata import PersonaMetadata, validate_metadata
from chapterverse.ext.knowledge.persona import to_text
from chapterverse.model import NO_LANGUAGE, PERSONA, Block, BlockKind, Page, Persona, Section
from chapterverse.readers.folder import decode_page, read_page
from chapterverse.readers.front_matter import split_values
from chapterverse.readers.html.visible_text import collapse, strip_invisible
from chapterverse.readers.site_pages import require_unchanged
from chapterverse.text import tokens

#: Most cl100k tokens, because it is sent with every question.
MAX_FILE_TOKENS = 400
#: A file of more bytes certainly has more tokens.
_MAX_BYTES = 100_000
#: Most characters of a name.
_MAX_NAME_CHARS = 60

_TITLE = "Persona"
_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
# An unclosed comment hides the rest, like in a built page.
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def read_source(file: Path, content_hash: str, path: str, url: str) -> Page:
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
    facts = {
        "scope": about.scope,
        "source": about.source,
        **({"topic": about.topic} if about.topic else {}),
        **({"revision": about.version} if about.version else {}),
    }
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
    text = _without_comments(strip_invisible(below)).strip()
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


def _without_comments(text: str) -> str:
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
