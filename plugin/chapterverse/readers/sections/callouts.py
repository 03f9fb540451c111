"""Recognizes admonitions and details elements, with their kind and title."""

from __future__ import annotations

from collections.abc import Iterator

from chapterverse.readers.html.dom import Child, Node

_BOXES = frozenset(
    "admonition admonitionblock callout custom-block markdown-alert theme-admonition topic sidebar"
    " starlight-aside".split()
)
_ROLES = frozenset(("alert", "note"))
_TITLES = frozenset(
    "admonition-title callout-header custom-block-title markdown-alert-title topic-title sidebar-title"
    " starlight-aside__title".split()
)
#: Remarks that authors can make in all generators together; on a `details` any other class is styling.
KINDS = frozenset(
    "abstract attention bug caution danger deprecated error example fail failure faq help hint important info note"
    " question quote seealso success summary tip tldr todo versionadded versionchanged warning".split()
)
#: Names of kinds that are several words.
_LABELS = {"seealso": "See also"}
#: Words beside the links of a "See also" box from which on it says something about them.
_MIN_WORDS = 4
_PREFIXES = ("theme-admonition-", "markdown-alert-", "starlight-aside--", "callout-")


def is_callout(node: Node) -> bool:
    """Return whether an element is a titled box: an admonition of any generator, or `details`."""
    classes = node.classes
    if node.name == "details" or not _BOXES.isdisjoint(classes):
        return True
    # DocFX has no other word for its boxes than their kind: "NOTE".
    return bool(classes) and (node.get("role") in _ROLES or (classes[0].isupper() and classes[0].lower() in KINDS))


def title_of(box: Node) -> Node | None:
    """Return the element that holds the title of a box."""
    for child in box.elements():
        if child.name == "summary" or any(c in _TITLES or c.startswith("admonitionHeading_") for c in child.classes):
            return child
    return None


def kind_of(box: Node) -> str:
    """Return the kind of a box, "Warning"; "" where it has none or only its looks."""
    for name in box.classes:
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        if name in KINDS or (box.name != "details" and "admonition" in box.classes and _is_own_kind(name)):
            return _LABELS.get(name) or name.replace("-", " ").capitalize()
    return ""


def headline(kind: str, title: str) -> str:
    """Return the first line of a box: its kind and title, once if they say the same; "" if it has neither."""
    if kind and title and kind.casefold() != title.casefold():
        return f"**{kind}: {title}**"
    return f"**{kind or title}**" if kind or title else ""


def is_source_dump(box: Node, title: str) -> bool:
    """Return whether a box repeats the source code that its page documents (mkdocstrings' `show_source`)."""
    return "mkdocstrings-source" in box.classes or title.startswith("Source code in ")


def is_link_list(box: Node) -> bool:
    """Return whether a "See also" box holds links and nothing about them: it is navigation."""
    if kind_of(box) != _LABELS["seealso"] or not any(inner.name == "a" for inner in box.walk()):
        return False
    title = title_of(box)
    words = [word for child in box.children if child is not title for word in _unlink(child)]
    return sum(word.strip(".,;:") != "" for word in words) < _MIN_WORDS


def _unlink(child: Child) -> Iterator[str]:
    """Yield the words that stand outside of links."""
    if isinstance(child, str):
        yield from child.split()
    elif child.name != "a":
        for inner in child.children:
            yield from _unlink(inner)


def _is_own_kind(name: str) -> bool:
    # Themes let authors invent kinds; "admonition-my-title" is Sphinx's way to style one without a kind.
    return name.isascii() and name.replace("-", "").isalpha() and name not in _NOT_KINDS and "admonition" not in name


_NOT_KINDS = frozenset(("docutils", "inline", "end", "annotate", "container", "alert"))
