"""Commands `remember` and `schema`, and what `status` says of a FAQ. A memory is a Markdown file."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import warn
from chapterverse.cli.parameters import argument, configure, option, print_json
from chapterverse.errors import ChapterVerseError, ConfigurationError, InputError
from chapterverse.ext.knowledge.entries import entry_id
from chapterverse.extensions import load_part
from chapterverse.indexing.additions import KNOWLEDGE_FOLDER
from chapterverse.model import DOCUMENT_TYPES, FAQ, MEMORY, slug, utc_now
from chapterverse.settings import Settings
from chapterverse.store import Snapshot

#: Letters of a file's name, of its text's first words.
_MAX_NAME_CHARS = 48


def remember(
    text: str | None = argument("One fact, as Markdown.", "TEXT"),
    importance: int = option("Importance, from 1 (a detail) to 5.", default=3, min=1, max=5),
    tag: list[str] | None = option("A word to find it by; may be repeated.", "TAG"),
    entity: str | None = option("Entity of the fact, such as enterprise; only its questions find it.", "NAME"),
    remove: Path | None = option("Remove this memory, by its path or its name.", "FILE"),
    knowledge: Path | None = option("Folder of knowledge; default docs/knowledge.", "DIR"),
    as_json: parameters.Json = False,
) -> None:
    """Write a fact for the chat into a file beside your docs, or remove one.

    A language model gets the facts that concern a question; no answer cites them. Review, edit and commit the file like
    your docs: chapterverse remember "The enterprise edition has no size limit." --entity enterprise --importance 4.
    The next `chapterverse index`, or build with the plugin, indexes it.
    """
    if (text is None) == (remove is None):
        raise typer.BadParameter("Give either a TEXT or --remove FILE.")
    folder = _folder(knowledge)
    file = (
        _remove_memory(folder, remove) if remove else _write_memory(folder, text or "", importance, tag or (), entity)
    )
    if as_json:
        print_json({"file": file.as_posix(), "removed": remove is not None})
        return
    typer.echo(f"{file.as_posix()} was {'removed' if remove else 'written'}: index the site for the chat to know it.")


def _folder(option: Path | None) -> Path:
    """Return the folder of knowledge, which need not be there yet."""
    folder = option or configure().knowledge
    if folder:
        return Path(folder)
    if Path("docs").is_dir():
        return Path("docs") / KNOWLEDGE_FOLDER
    raise ConfigurationError("There is no folder docs here: name the folder of knowledge with --knowledge DIR.")


def schema(
    kind: str | None = argument("page, persona, faq, memory, turn or summary.", "TYPE"),
    as_json: parameters.Json = False,
) -> None:
    """Print the fields of a document type, or of all.

    Front matter, `import` and the API use the same fields.
    """
    if kind is not None and kind not in DOCUMENT_TYPES:
        raise typer.BadParameter(f"TYPE must be one of {', '.join(DOCUMENT_TYPES)}.")
    from chapterverse.ext.knowledge.metadata import get_schemas

    schemas = {kind: get_schemas(kind)} if kind else get_schemas()
    if as_json:
        print_json(schemas[kind] if kind else schemas)
        return
    for name, one in schemas.items():
        typer.echo(f"{name}: {', '.join(one['fields'])} (required: {', '.join(one['required_fields'])})")


def list_unmatched(settings: Settings, snapshot: Snapshot) -> list[str] | None:
    """Return the FAQ entries that have answered nothing for 30 days, as FILE: QUESTION; None if that is not known.

    Entries that are not in the index for so long are left out.
    """
    try:
        matched = load_part("conversations")(settings).matched_entries()
    except ChapterVerseError as error:
        # The rest of the report does not depend on it.
        warn(error)
        return None
    since = (datetime.now(UTC) - timedelta(days=30)).isoformat()
    return sorted(
        f"{entry.source_file_path}: {entry.section_heading}"
        for entry in snapshot.page(FAQ, "type")
        if entry.timestamp < since and entry_id(entry) not in matched
    )


def _write_memory(folder: Path, text: str, importance: int, tags: Sequence[str], entity: str | None) -> Path:
    """Write a fact below the folder of knowledge and return its file, which is new.

    Args:
        entity: whose fact it is; only a question that names it finds it.

    Raises:
        InputError: a field or the text is invalid; nothing was written.
    """
    # Imported here, as below: no other command needs the models of metadata.
    from chapterverse.ext.knowledge.metadata import validate_metadata

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


def _remove_memory(folder: Path, file: Path) -> Path:
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
    from chapterverse.ext.knowledge.documents import read_knowledge

    with tempfile.TemporaryDirectory() as scratch_dir:
        (Path(scratch_dir) / name).write_bytes(content)
        content_hash = hashlib.sha256(content).hexdigest()
        read_knowledge(
            Path(scratch_dir), name, kind=MEMORY, content_hash=content_hash, path="The memory", language="en"
        )
