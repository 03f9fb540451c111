"""Moves labels in a tree to what they name, before it is read: those of tabs and footnotes.

Tabs and their panels are paired by the ids that ARIA gives them, else by their order: it is one in every generator,
though labels and panels rarely stand side by side, and not always in one element. Sets older than ARIA (pymdownx,
sphinx-design and others) are known by their classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Set

from chapterverse.readers.html.dom import TAB_PANELS, TAB_SETS, TABS, Child, Node
from chapterverse.readers.html.visible_text import collapse

_FOOTNOTE = frozenset(("footnote", "footnote-definition"))
_FOOTNOTES = _FOOTNOTE | {"footnotes", "footnote-list", "footnotes-list"}


def move_tabs(root: Node) -> dict[Node, str]:
    """Return the label of each tab panel, "" where it has none; it becomes the panel's first child.

    A tab without a panel keeps its text where it stands.
    """
    labels: dict[Node, str] = {}
    levels = [root]
    while levels:
        pieces = list(_pieces(levels.pop()))
        panels = [node for node, is_tab in pieces if not is_tab]
        named = {name: panel for panel in panels for name in (panel.get("id"), panel.get("aria-labelledby")) if name}
        waiting: deque[Node] = deque()
        was_tab = True
        for node, is_tab in pieces:
            if is_tab and not was_tab:
                # Another set begins.
                waiting.clear()
            was_tab = is_tab
            if is_tab:
                panel = next(filter(None, map(named.get, _names(node))), None)
                if panel is None or panel in labels:
                    waiting.append(node)
                else:
                    labels[panel] = _move_label(node, panel)
            elif node not in labels:
                labels[node] = _move_label(waiting.popleft(), node) if waiting else ""
        levels += panels
    return labels


def _move_label(tab: Node, panel: Node) -> str:
    label = Node("b")
    # A tab may be a company's logo.
    images = " ".join(inner.get("alt") or "" for inner in tab.walk() if inner.name == "img")
    label.children = [collapse(tab.text()) or collapse(images or tab.get("aria-label") or "")]
    tab.children = []
    panel.children[:0] = [label, " "]
    return label.text()


def _names(tab: Node) -> Iterator[str]:
    """Yield the names by which a panel may know a tab, or a tab its panel."""
    yield tab.get("id") or ""
    yield from (tab.get("aria-controls") or "").split()
    yield (tab.get("data-bs-target") or tab.get("href") or "").removeprefix("#")


def _pieces(level: Node) -> Iterator[tuple[Node, bool]]:
    """Yield the tabs and the panels below an element, but not those inside of panels, and whether each is a tab."""
    rest = [(child, False) for child in reversed(level.elements())]
    while rest:
        node, in_set = rest.pop()
        if not (in_set or node.holds & TABS):
            continue
        classes = node.classes
        if node.get("role") == "tab" or "tabbutton" in classes or (in_set and node.name == "label") or _is_item(node):
            yield node, True
        elif node.block and (
            node.get("role") == "tabpanel" or not TAB_PANELS.isdisjoint(classes) or (in_set and _is_old_panel(node))
        ):
            yield node, False
        elif in_set and "blocks" in classes:  # VitePress: every element in it is a panel
            yield from ((panel, False) for panel in node.elements() if panel.block)
        else:
            inside = in_set or not TAB_SETS.isdisjoint(classes)
            rest.extend((child, inside) for child in reversed(node.elements()))


def _is_item(node: Node) -> bool:
    """Return whether an element is a tab of Antora, whose roles only a script adds."""
    return node.name == "li" and "tab" in node.classes and bool(node.get("id"))


def _is_old_panel(node: Node) -> bool:
    # pymdownx's default style calls the panel itself "tabbed-content", the other one the element around all panels.
    if "tabbed-content" in node.classes:
        return not any("tabbed-block" in child.classes for child in node.elements())
    return "tab-content" in node.classes


def find_footnotes(root: Node) -> dict[str, Node]:
    notes: dict[str, Node] = {}
    for node in root.walk():
        if node.block and not _FOOTNOTES.isdisjoint(node.classes):
            for note in (node, *node.walk()):
                if _is_note(note):
                    notes.setdefault(note.get("id") or "", note)
    return notes


def _is_note(node: Node) -> bool:
    if not node.get("id"):
        return False
    # AsciiDoc and older books of mdBook have a `div` for each; one around a list holds several.
    is_div = node.name == "div" and not _FOOTNOTE.isdisjoint(node.classes)
    is_one = is_div and not any(inner.name == "li" and inner.get("id") for inner in node.walk())
    return is_one or node.name == "li" or node.get("role") == "doc-footnote"


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
            kept = [child for child in node.children if not _leads_back(child, places)]
            if len(kept) < len(node.children) and isinstance(kept[0] if kept else None, str):
                # A number that leads back leaves its period.
                kept[0] = str(kept[0]).lstrip(". \n")
            node.children = kept
    return labels


def _reference_ids(node: Node, footnotes: Mapping[str, Node]) -> Iterator[str]:
    """Yield the ids by which a link leads to the reference that an element is or holds."""
    if any(link.name == "a" and link.target_id in footnotes for link in (node, *node.elements())):
        yield from filter(None, (node.get("id"), *(link.get("id") for link in node.elements())))


def _leads_back(child: Child, places: Set[str]) -> bool:
    if isinstance(child, str) or child.name != "a":
        return False
    return child.target_id in places or not any(map(str.isalnum, child.text()))


def footnote_label(node: Node) -> str:
    """Return the label of a footnote reference, without its brackets."""
    return collapse(node.text()).strip("[]") or "*"
