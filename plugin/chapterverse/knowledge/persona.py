"""The persona: name, language and tone that the owner gives the chat.

It stands in the index as one chunk of the type `persona`, so that a service that has only the index knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chapterverse.model import PERSONA

if TYPE_CHECKING:
    from chapterverse.store import Snapshot


_RULE = "---"


@dataclass(frozen=True, slots=True)
class Persona:
    """How the chat speaks. It shapes the wording and nothing else: what is cited and refused is decided by code.

    Attributes:
        name: what the chat calls itself; empty for no name.
        language: BCP 47 tag to answer in where the pages speak it; empty for the reader's own.
        text: tone and rules in the owner's words, Markdown.
    """

    name: str = ""
    language: str = ""
    text: str = ""

    def written(self) -> str:
        """Return the text of its chunk; `from_text` is the inverse."""
        return f"{_RULE}\nname: {self.name}\nlanguage: {self.language}\n{_RULE}\n\n{self.text}".rstrip()

    @classmethod
    def from_text(cls, text: str) -> Persona:
        """Read the text of a chunk; one that says neither name nor language is all text. Never fails."""
        lines = text.split("\n", 4)
        if len(lines) < 4 or lines[0] != _RULE or lines[3] != _RULE:
            return cls(text=text.strip())
        # No YAML: the query path has no use for its parser, and these lines are our own.
        name, language = (line.partition(":")[2].strip() for line in lines[1:3])
        return cls(name, language, "\n".join(lines[4:]).strip())


def persona_of(snapshot: Snapshot) -> Persona:
    """Return the persona of a generation, an empty one where it has none; costs one look-up, by an indexed field.

    Raises:
        IndexFault: the index can't be read.
    """
    chunks = snapshot.page(PERSONA, "type")
    return Persona.from_text(chunks[0].text) if chunks else Persona()
