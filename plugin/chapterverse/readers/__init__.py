"""Readers turn documentation pages into sections of blocks, with the anchors that the page really has."""

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
