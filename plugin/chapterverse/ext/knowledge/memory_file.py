"""Writes a memory as a Markdown file, and removes one. The next index takes up both."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chapterverse.errors import InputError
from chapterverse.ext.knowledge.documents import read_knowledge
from chapterverse.ext.knowledge.metadata import validate_metadata
from chapterverse.model import MEMORY, slug, utc_now

#: Letters of a file's name, of its text's first words.
_MAX_NAME_CHARS = 48


def write_memory(folder: Path, text: str, importance: int, tags: Sequence[str], entity: str | None) -> Path:
    """Write a fact below the folder of knowledge and return its file, which is new.

    Args:
        entity: whose fact it is; only a question that names it finds it.

    Raises:
        InputError: a field or the text is invalid; nothing was written.
    """
    fields: dict[str, object] = {"timestamp": utc_now(), "importance": importance}
    fields |= {"tags": list(tags)} if tags else {}
    fields |= {"entity": entity} if entity is not None else {}
    validate_metadata(MEMORY, fields)
    fields |= {"scope": f"entity:{entity}"} if entity is not None else {}
    # Every JSON value is a YAML value.
    front_matter = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())
    content = f"---\n{front_matter}---\n{text.strip()}\n".encode(errors="replace")
    name = slug(text)[:_MAX_NAME_CHARS].strip("-")
    _check(f"{name}.md", content)
    memories = folder / MEMORY
    memories.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        file = memories / (f"{name}.md" if number == 1 else f"{name}-{number}.md")
        try:
            with file.open("xb") as new:
                new.write(content)
        except FileExistsError:
            number += 1
        else:
            return file


def remove_memory(folder: Path, file: Path) -> Path:
    """Remove a memory and return its file.

    Args:
        file: its path, or its name below the folder of memories.

    Raises:
        InputError: there is no such file, or it is no memory of this folder.
    """
    memories = folder / MEMORY
    target = next((path for path in (file, memories / file) if path.is_symlink() or path.exists()), None)
    if target is None:
        raise InputError(f"There is no memory {file}: name a file in {memories}.")
    inside = target.parent.resolve().is_relative_to(memories.resolve())
    if not inside or target.suffix != ".md" or (target.is_dir() and not target.is_symlink()):
        raise InputError(f"{file} is no memory: name a file in {memories}.")
    target.unlink()
    return target


def _check(name: str, content: bytes) -> None:
    """Raise `InputError` if an index could not read a file of this content."""
    with tempfile.TemporaryDirectory() as scratch_dir:
        (Path(scratch_dir) / name).write_bytes(content)
        content_hash = hashlib.sha256(content).hexdigest()
        read_knowledge(
            Path(scratch_dir), name, kind=MEMORY, content_hash=content_hash, path="The memory", language="en"
        )
