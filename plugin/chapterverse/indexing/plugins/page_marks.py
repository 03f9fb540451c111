"""What a plugin writes into a page's content: the marks of its content, and the page's starter questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.indexing.plugins.index_run import Log
from chapterverse.indexing.plugins.pages import stated_type
from chapterverse.page_kinds import known_content_type, unknown_content_type
from chapterverse.readers.html.page_mark import PageMark, mark_content, seal
from chapterverse.readers.html.tokenizer import Edit, apply_edits


def render_content(html: str, mark: PageMark, meta: Mapping[str, Any], log: Log) -> str:
    """Return a page's content with its marks and its starter questions; warn of a wrong `meta`."""
    content = mark_content(html, mark)
    try:
        content += render_starters(meta)
    except ConfigurationError as error:
        log.warning(f"{mark.path}: {error}")
    return content


def seal_page(page: str, edits: list[Edit]) -> str:
    """Return a page as it is written: with its marks as comments, and with further edits."""
    return apply_edits(page, seal(page) + edits)


def render_starters(meta: Mapping[str, Any]) -> str:
    """Return a hidden HTML element with the starter questions of a page's front matter, "" if it has none.

    Raises:
        ConfigurationError: they are not a list of questions, or it states an unknown content type.
    """
    content_type = stated_type(meta)
    if content_type is not None and not known_content_type(content_type):
        raise ConfigurationError(unknown_content_type(content_type))
    chapterverse_meta = meta.get("chapterverse")
    if not isinstance(chapterverse_meta, dict) or chapterverse_meta.get("starters") is None:
        return ""
    from chapterverse.widget.options import starters_element

    return starters_element(chapterverse_meta["starters"], "chapterverse.")
