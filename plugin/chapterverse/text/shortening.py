"""Cuts texts to a length."""

from __future__ import annotations


def cut_to_bytes(text: str, most: int) -> str:
    """Return the beginning of a text, of at most so many bytes in UTF-8 and without a part of a character.

    A lone surrogate becomes a question mark.
    """
    return text.encode(errors="replace")[:most].decode(errors="ignore")


def cut_to_words(text: str, most: int) -> str:
    """Return the beginning of a text, of at most so many characters and up to a space if there is one."""
    return text if len(text) <= most else text[:most].rpartition(" ")[0] or text[:most]


def ellipsize(text: str, most: int) -> str:
    """Return a text of at most so many characters: of a longer one the beginning, with an ellipsis as the last."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
