"""Reads the chunks of a FAQ and of the persona, as a service does, which may have only the index."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from chapterverse.model import PERSONA, Chunk, Persona

if TYPE_CHECKING:
    from chapterverse.store import Snapshot

_RULE = "---"


def repeated_questions(chunks: Iterable[Chunk], *, chunk_is_entry: bool) -> Iterator[str]:
    """Yield a warning for each question that two entries claim.

    Args:
        chunk_is_entry: whether each chunk is an entry; else one entry may be cut into several chunks.
    """
    entries: defaultdict[tuple[str, str, str], dict[object, tuple[str, str | None]]] = defaultdict(dict)
    for chunk in sorted(chunks, key=lambda c: (c.source_file_path, c.chunk_index)):
        place = chunk.chunk_id if chunk_is_entry else (chunk.source_file_path, chunk.heading_path)
        question = comparable(chunk.section_heading or ""), chunk.language, chunk.scope
        entries[question].setdefault(place, (chunk.source_file_path, chunk.section_heading))
    for of_question in entries.values():
        if len(of_question) > 1:
            first, *other_entries = of_question.values()
            other = next((entry for entry in other_entries if entry[0] != first[0]), first)
            if other == first:
                yield f"{first[0]} answers the question “{first[1]}” more than once: keep one answer."
            else:
                yield f"{first[0]} and {other[0]} both answer the question “{other[1]}”: keep one."


def comparable(question: str) -> str:
    """Return a question's words alone, in lower case: two questions with the same ones are one."""
    return " ".join(re.findall(r"\w+", question.casefold()))


def entry_id(chunk: Chunk) -> str:
    """Return the id under which it is kept that an entry answered: 64 digits, the same after its answer was edited."""
    parts = (chunk.version, chunk.language, chunk.source_file_path, comparable(chunk.section_heading or ""))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def to_text(persona: Persona) -> str:
    """Return the text of the persona's chunk; `from_text` is the inverse."""
    return f"{_RULE}\nname: {persona.name}\nlanguage: {persona.language}\n{_RULE}\n\n{persona.text}".rstrip()


def from_text(text: str) -> Persona:
    """Parse the text of a chunk; without name and language lines it is all `text`. Never fails."""
    lines = text.split("\n", 4)
    if len(lines) < 4 or lines[0] != _RULE or lines[3] != _RULE:
        return Persona(text=text.strip())
    # No YAML: the query path doesn't load its parser, and `to_text` made these lines.
    name, language = (line.partition(":")[2].strip() for line in lines[1:3])
    return Persona(name, language, "\n".join(lines[4:]).strip())


def persona_of(snapshot: Snapshot) -> Persona:
    """Return the persona of a generation, an empty one if it has none. Costs one look-up by an indexed field.

    Raises:
        IndexFault: the index can't be read.
    """
    chunks = snapshot.page(PERSONA, "type")
    return from_text(chunks[0].text) if chunks else Persona()
