"""Batches stream events that arrive together, since every piece of a draft is inspected whole."""

from __future__ import annotations

from chapterverse.net import Stream

#: So many events at the most: a reader still sees a text that is written.
_MOST = 4


class Pieces:
    """The text of one stream; nothing waits while the server is silent."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._waiting: list[str] = []

    def take(self, text: str) -> str:
        """Return what is to be passed on now that an event said this, or nothing."""
        self._waiting.append(text)
        return self.rest() if len(self._waiting) >= _MOST or not self._stream.at_hand else ""

    def rest(self) -> str:
        """Return what still waits."""
        text = "".join(self._waiting)
        self._waiting.clear()
        return text
