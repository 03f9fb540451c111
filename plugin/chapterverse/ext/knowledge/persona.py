"""The persona as the one chunk of the type `persona` that stores it, because a service may have only the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chapterverse.model import PERSONA, Persona

if TYPE_CHECKING:
    from chapterverse.store import Snapshot


_RULE = "---"


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
