"""Pairs the labels and panels of tab sets, in the markup of each generator.

pymdownx (both styles), four extensions of Sphinx (sphinx-design, sphinx-tabs, sphinx-inline-tabs, sphinx-code-tabs),
Docusaurus and VitePress all put labels and panels in the same
order, though rarely side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from chapterverse.readers.html.dom import Child, Node
from chapterverse.readers.html.visible_text import collapse

_SETS = frozenset("tabbed-set sd-tab-set sphinx-tabs tab-set tabs-container theme-tabs-container vp-code-group".split())
_PANELS = frozenset("tabbed-block sd-tab-content tab-content codetab texttab".split())


def is_tab_set(node: Node) -> bool:
    """Return whether an element holds labels and the panels that they choose."""
    classes = node.classes
    # sphinx-code-tabs gives a set no name of its own.
    is_code_tabs = "tabs" in classes and any("tabbar" in child.classes for child in node.elements())
    return is_code_tabs or not _SETS.isdisjoint(classes)


def split_tabs(tab_set: Node) -> tuple[list[tuple[str, list[Child]]], list[Child]]:
    """Return pairs of label and content of its panel, and the rest of the set. A label may be "", a panel empty."""
    labels: list[str] = []
    panels: list[list[Child]] = []
    rest: list[Child] = []
    for child in _pieces(tab_set):
        if isinstance(child, str):
            rest.append(child)
        elif _is_label(child):
            labels.append(collapse(child.text()))
        elif _is_panel(child):
            panels.append([child])
        elif "blocks" in child.classes:  # VitePress: every element in it is a panel
            panels.extend([panel] for panel in child.elements())
        else:
            rest.append(child)
    return [(label or "", panel or []) for label, panel in zip_longest(labels, panels)], rest


def _pieces(tab_set: Node) -> Iterator[Child]:
    stack = tab_set.children[::-1]
    while stack:
        child = stack.pop()
        if isinstance(child, str) or _is_label(child) or _is_panel(child) or not _holds_pieces(child):
            yield child
        else:
            stack.extend(reversed(child.children))


def _is_label(node: Node) -> bool:
    return node.name == "label" or node.get("role") == "tab" or "tabbutton" in node.classes


def _is_panel(node: Node) -> bool:
    classes = node.classes
    if not _PANELS.isdisjoint(classes) or node.get("role") == "tabpanel":
        return True
    # pymdownx's older style calls the panel itself "tabbed-content", the newer one the element around all panels.
    return "tabbed-content" in classes and not any("tabbed-block" in c.classes for c in node.elements())


def _holds_pieces(node: Node) -> bool:
    return any(_is_label(n) or _is_panel(n) for n in node.walk())
