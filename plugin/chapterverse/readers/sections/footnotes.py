"""Finds footnotes and their labels, so that each goes to the section that refers to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from chapterverse.readers.html.dom import Child, Node
from chapterverse.readers.html.visible_text import collapse

_CLASSES = frozenset(("footnote", "footnotes", "footnote-definition", "footnote-list", "footnotes-list"))


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
    # Older books of mdBook have a `div` for each.
    is_note = node.name == "li" or node.get("role") == "doc-footnote" or "footnote-definition" in node.classes
    return is_note and bool(node.get("id"))


def footnote_labels(root: Node, footnotes: Mapping[str, Node]) -> dict[str, str]:
    """Return the labels of footnotes by id: the text of the first reference to each. Take links back out of the tree.

    A link in a footnote leads back if it is a mere sign, or if it leads to an element around its reference.
    """
    labels: dict[str, str] = {}
    places: set[str] = set()
    for node in root.walk() if footnotes else ():
        places.update(_reference_ids(node, footnotes))
        if node.name == "a" and node.target_id in footnotes:
            labels.setdefault(node.target_id, footnote_label(node))
    for note in footnotes.values():
        for node in (note, *note.walk()):
            node.children = [child for child in node.children if not _leads_back(child, places)]
    return labels


def _reference_ids(node: Node, footnotes: Mapping[str, Node]) -> Iterator[str]:
    """Yield the ids by which a link leads to the reference that an element is or holds."""
    if any(link.name == "a" and link.target_id in footnotes for link in (node, *node.elements())):
        yield from filter(None, (node.get("id"), *(link.get("id") for link in node.elements())))


def _leads_back(child: Child, places: Set[str]) -> bool:
    if isinstance(child, str) or child.name != "a":
        return False
    return child.target_id in places or not any(map(str.isalnum, child.text()))


def unlabel(citation: Node) -> list[Child]:
    """Return the content of a citation with its label at the beginning of its first paragraph: "[KNU84] Knuth, …"."""
    label = next((child for child in citation.elements() if "label" in child.classes), None)
    first = next((child for child in citation.elements() if child.name == "p"), None)
    if label is None or first is None:
        return citation.children
    first.children[:0] = [label, " "]
    return [child for child in citation.children if child is not label]


def footnote_label(node: Node) -> str:
    """Return the label of a footnote reference, without its brackets."""
    return collapse(node.text()).strip("[]") or "*"
