"""What both sieves have in common: text comes in pieces, and what of it may stand comes out with its place."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Kept:
    """Stretches of a text that may stand, each with the place of its first character."""

    pieces: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece for _, piece in self.pieces)

    def places(self) -> list[int]:
        """Return the place of each character of `text`."""
        return [i for at, piece in self.pieces for i in range(at, at + len(piece))]
