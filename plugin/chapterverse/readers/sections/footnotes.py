"""Finds footnotes and their labels, so that each goes to the section that refers to it."""

from __future__ import annotations

from collections.abc import Collection

from chapterverse.readers.html.dom import Node
from chapterverse.readers.html.visible_text import collapse

_CLASSES = frozenset(("footnote", "footnotes", "footnote-list", "footnotes-list"))


def holds_footnotes(node: Node) -> bool:
    """Return whether an element holds footnotes, one or all."""
    return (
        not _CLASSES.isdisjoint(node.classes)
        or node.get("data-footnotes") is not None
        or node.get("role") == "doc-endnotes"
    )


def find_footnotes(root: Node) -> dict[str, Node]:
    """Return the footnotes of a page by id."""
    notes: dict[str, Node] = {}
    for node in root.walk():
        if node.block and holds_footnotes(node):
            for note in (node, *node.walk()):
                if _is_note(note):
                    notes.setdefault(note.get("id") or "", note)
    return notes


def _is_note(node: Node) -> bool:
    return bool(node.get("id")) and (node.name == "li" or node.get("role") == "doc-footnote")


def footnote_labels(root: Node, footnotes: Collection[str]) -> dict[str, str]:
    """Return the labels of footnotes by id: the text of the first reference to each."""
    labels: dict[str, str] = {}
    for node in root.walk() if footnotes else ():
        if node.name == "a" and node.target_id in footnotes:
            labels.setdefault(node.target_id, footnote_label(node))
    return labels


def footnote_label(node: Node) -> str:
    """Return the label of a footnote reference, without its brackets."""
    return collapse(node.text()).strip("[]") or "*"
