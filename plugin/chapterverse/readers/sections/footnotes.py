"""Finds footnotes, so that each goes to the section that refers to it."""

from __future__ import annotations

from chapterverse.readers.html.dom import Node

_PILES = frozenset(("footnote", "footnotes", "footnote-list", "footnotes-list"))


def is_pile(node: Node) -> bool:
    """Return whether an element holds footnotes, one or all."""
    return (
        not _PILES.isdisjoint(node.classes)
        or node.get("data-footnotes") is not None
        or node.get("role") == ("doc-endnotes")
    )


def find_footnotes(root: Node) -> dict[str, Node]:
    """Return the footnotes of a page by id."""
    notes: dict[str, Node] = {}
    for node in root.walk():
        if node.block and is_pile(node):
            for note in (node, *node.walk()):
                if _is_note(note):
                    notes.setdefault(note.get("id") or "", note)
    return notes


def _is_note(node: Node) -> bool:
    return bool(node.get("id")) and (node.name == "li" or node.get("role") == "doc-footnote")
