"""The persona: name, language and tone that the owner gives the chat.

It is stored as one chunk of the type `persona`, because a service may have only the index.
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
    """The style of the chat. It affects the wording only: code decides on citations and refusals.

    Attributes:
        name: the chat's name for itself; empty for none.
        language: BCP 47 tag of the answers if the pages are in it; empty for the reader's own.
        text: tone and rules in the owner's words, Markdown.
    """

    name: str = ""
    language: str = ""
    text: str = ""

    def to_text(self) -> str:
        """Return the text of the persona's chunk; `from_text` is the inverse."""
        return f"{_RULE}\nname: {self.name}\nlanguage: {self.language}\n{_RULE}\n\n{self.text}".rstrip()

    @classmethod
    def from_text(cls, text: str) -> Persona:
        """Parse the text of a chunk; without name and language lines it is all `text`. Never fails."""
        lines = text.split("\n", 4)
        if len(lines) < 4 or lines[0] != _RULE or lines[3] != _RULE:
            return cls(text=text.strip())
        # No YAML: the query path doesn't load its parser, and `written` made these lines.
        name, language = (line.partition(":")[2].strip() for line in lines[1:3])
        return cls(name, language, "\n".join(lines[4:]).strip())


def persona_of(snapshot: Snapshot) -> Persona:
    """Return the persona of a generation, an empty one if it has none. Costs one look-up by an indexed field.

    Raises:
        IndexFault: the index can't be read.
    """
    chunks = snapshot.page(PERSONA, "type")
    return Persona.from_text(chunks[0].text) if chunks else Persona()
