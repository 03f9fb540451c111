"""Readers turn documentation pages into sections of blocks, with the anchors that the page really has."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chapterverse.readers.html import HtmlPage, read_document, read_fragment
    from chapterverse.readers.markdown import MarkdownPage, read_markdown
    from chapterverse.readers.reading import Reading
    from chapterverse.readers.site import read_site
    from chapterverse.readers.slugs import Slugger, SlugRule
    from chapterverse.readers.sources import read_sources

__all__ = (
    "HtmlPage",
    "MarkdownPage",
    "Reading",
    "SlugRule",
    "Slugger",
    "read_document",
    "read_fragment",
    "read_markdown",
    "read_site",
    "read_sources",
)

# Loaded on first use: a build with the plugin needs one module of this package, and no parser of Markdown.
_MODULES = {
    "HtmlPage": "html",
    "MarkdownPage": "markdown",
    "Reading": "reading",
    "SlugRule": "slugs",
    "Slugger": "slugs",
    "read_document": "html",
    "read_fragment": "html",
    "read_markdown": "markdown",
    "read_site": "site",
    "read_sources": "sources",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
