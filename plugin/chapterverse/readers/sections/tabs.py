"""Pairs tabs and their panels: by the ids that ARIA gives them, else by their order.

Labels and panels stand in one order in every generator, though rarely side by side, and not always in one element.
Sets older than ARIA (pymdownx, sphinx-design and others) are known by their classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from chapterverse.readers.html.dom import TAB_PANELS, TAB_SETS, TABS, Node
from chapterverse.readers.html.visible_text import collapse


def move_tabs(root: Node) -> dict[Node, str]:
    """Return the label of each tab panel, "" where it has none; it becomes the panel's first child.

    A tab without a panel keeps its text where it stands.
    """
    labels: dict[Node, str] = {}
    levels = [root]
    while levels:
        pieces = list(_pieces(levels.pop()))
        panels = [node for node, is_tab in pieces if not is_tab]
        by_id = {panel.get("id"): panel for panel in panels if panel.get("id")}
        by_tab = {panel.get("aria-labelledby"): panel for panel in panels if panel.get("aria-labelledby")}
        waiting: deque[Node] = deque()
        was_tab = True
        for node, is_tab in pieces:
            if is_tab and not was_tab:
                # Another set begins.
                waiting.clear()
            was_tab = is_tab
            if is_tab:
                named = by_tab.get(node.get("id") or " ") or next(filter(None, map(by_id.get, _names(node))), None)
                if named is None or named in labels:
                    waiting.append(node)
                else:
                    labels[named] = _move_label(node, named)
            elif node not in labels:
                labels[node] = _move_label(waiting.popleft(), node) if waiting else ""
        levels += panels
    return labels


def _move_label(tab: Node, panel: Node) -> str:
    label = Node("b")
    label.children = [collapse(tab.text())]
    tab.children = []
    panel.children[:0] = [label, " "]
    return label.text()


def _names(tab: Node) -> Iterator[str]:
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
    # pymdownx's older style calls the panel itself "tabbed-content", the newer one the element around all panels.
    if "tabbed-content" in node.classes:
        return not any("tabbed-block" in child.classes for child in node.elements())
    return "tab-content" in node.classes
