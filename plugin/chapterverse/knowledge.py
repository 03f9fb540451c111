"""What the owner of a documentation tells the chat besides the pages: who it is and how it speaks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Persona:
    """How the chat speaks. It shapes the wording and nothing else: what is cited and refused is decided by code.

    Attributes:
        name: what the chat calls itself; empty for no name.
        language: BCP 47 tag to answer in whatever the question's language; empty for the reader's own.
        text: tone and rules in the owner's words, Markdown.
    """

    name: str = ""
    language: str = ""
    text: str = ""
