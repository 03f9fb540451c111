"""Reads and writes heads. A head names the live generation of a scope.

It is replaced as a whole, and only when its generation is durable.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chapterverse.errors import IndexCorrupt, IndexFault, IndexLocked, IndexMismatch, IndexMissing
from chapterverse.model import FORMAT, EmbedderCard, Head, Scope
from chapterverse.text.json_text import parse_json

HEAD_FILE = "head.json"
_NEXT = "head.new"
#: The folder of a site or version whose name is empty.
_EMPTY_NAME = "@"
#: Longer names of sites and versions are shortened, because a folder's name may not be long.
_MAX_NAME_CHARS = 100
_FOLDER_NAME = re.compile(r"[A-Za-z0-9_~%=@-]+")


def folder_name(name: str) -> str:
    """Return a name for a file system or bucket. It differs for each site or version, and is never a path."""
    quoted = quote(name, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(quoted) > _MAX_NAME_CHARS:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return f"{quoted[:64]}={digest[:32]}"
    return quoted or _EMPTY_NAME


def is_folder_name(name: str) -> bool:
    """Return whether a name may be one of `folder_name`. A volume's `lost+found` is not."""
    return _FOLDER_NAME.fullmatch(name) is not None


def parse_head_document(raw: bytes, place: object) -> tuple[Head, dict[str, Any]]:
    """Return the head that a document holds, and the document.

    Args:
        place: the place of the document, for messages.

    Raises:
        IndexMismatch: it is in a newer format.
        IndexCorrupt: it is damaged.
    """
    with translating_errors(describe_damage(place)):
        document = parse_json(raw)
        return parse_head(document["head"]), document


@contextlib.contextmanager
def translating_errors(damage: str) -> Iterator[None]:
    """Raise `IndexCorrupt` with a message if a stored document lacks a field, or holds a value of another type."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IndexCorrupt(damage) from None


def describe_damage(place: object) -> str:
    """Return the message for a damaged head at this place."""
    return f"{place} is damaged: build the index again."


def missing_error(scope: Scope) -> IndexMissing:
    """Return the error of a scope without a head."""
    return IndexMissing(f"Nothing was published for {scope} yet: index the site first.")


def parse_head(fields: Mapping[str, Any]) -> Head:
    """Return the head with these fields.

    Raises:
        IndexMismatch: it is in a newer format.
        KeyError, TypeError, ValueError: a field is missing, unknown, or not of its type.
    """
    if int(fields["format"]) > FORMAT:
        raise IndexMismatch(
            f"The index is in format {fields['format']}, this release reads up to {FORMAT}: upgrade chapterverse."
        )
    parts = {"embedder": EmbedderCard(**fields["embedder"]), "languages": tuple(fields["languages"])}
    head = Head(**{**fields, **parts})
    card, numbers = head.embedder, (*dict(head.calibration).values(), head.fusion_weight)
    names = (head.site, head.version, card.name, card.space, *head.languages)
    texts = (head.pipeline, head.base_url, head.published_at, head.token)
    counts = (head.generation, head.pages, head.chunks, card.size, card.limit)
    if not all(isinstance(text, str) for text in (*names, *texts)):
        raise TypeError
    if not all(isinstance(n, int | float) for n in numbers) or not all(type(n) is int and n >= 0 for n in counts):
        raise ValueError
    return head


def encode(head: Head, **fields: Any) -> bytes:
    return json.dumps({**fields, "head": asdict(head)}, ensure_ascii=False, indent=1, sort_keys=True).encode()


def check_next(head: Head, previous: Head | None) -> None:
    """Raise `IndexLocked` if a head does not follow the one that was live when its publication began."""
    if head.generation != (previous.generation if previous else 0) + 1:
        raise overtaken_error(head)


def overtaken_error(head: Head) -> IndexLocked:
    """Return the error of a publication that lost a race against another one."""
    return IndexLocked(f"Generation {head.generation} of {head.scope} was published meanwhile: run it again.")


def read_head(path: Path) -> tuple[Head, str]:
    """Return a head and the name of its generation's folder.

    Raises:
        IndexMissing: there is no head.
        IndexMismatch: it is in a newer format.
        IndexCorrupt: it is damaged.
        IndexFault: the system doesn't allow reading it, so its content is unknown.
    """
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise IndexMissing("Nothing was published there yet.") from None
    except IsADirectoryError:
        raise IndexCorrupt(describe_damage(path)) from None
    except OSError as error:
        raise unreadable_error(path, error) from error
    head, document = parse_head_document(raw, path)
    if not isinstance(document.get("folder"), str):
        raise IndexCorrupt(describe_damage(path))
    return head, document["folder"]


def unreadable_error(path: Path, error: OSError) -> IndexFault:
    """Return the error of a file or folder that the system doesn't allow reading."""
    return IndexFault(f"{path} can't be read ({error.strerror}): see that this user may, and run again.")


def write_head(folder: Path, head: Head, name: str) -> None:
    """Replace the head. Readers see the generation from the last instruction on."""
    with (folder / _NEXT).open("wb") as file:
        file.write(encode(head, folder=name))
        file.flush()
        os.fsync(file.fileno())
    (folder / _NEXT).replace(folder / HEAD_FILE)


def live_name(folder: Path) -> str:
    """Return the name of the live generation's folder; "" without a head, or with a damaged one."""
    with contextlib.suppress(IndexMissing, IndexCorrupt):
        return read_head(folder / HEAD_FILE)[1]
    return ""
