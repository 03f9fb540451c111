"""What a plugin writes into a page's content: marks around what the index read, and the page's starter questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.indexing.plugins.index_run import Log
from chapterverse.indexing.plugins.pages import check_content_type

#: The attribute of the mark that `mark_content` puts at the end of a page's content.
READ_MARK = "data-chapterverse-read"
_EXCLUDED = re.compile(r"(<[a-zA-Z][^<>]*?\s)(data-search-exclude(?=[\s=/>]))")


def render_content(html: str, content_hash: str, meta: Mapping[str, Any], path: str, log: Log) -> str:
    """Return a page's content with our marks (see `mark_content`) and its starter questions; warn of a wrong `meta`."""
    content = mark_content(html, content_hash)
    try:
        content += render_starters(meta)
    except ConfigurationError as error:
        log.warning(f"{path}: {error}")
    return content


def mark_content(html: str, content_hash: str) -> str:
    """Return a page's content with marks around the parts that the index read, for `check` and for readers of the page.

    A hidden element at the end has the content's hash; text that a theme adds behind it is no part of the page.
    Excluded elements get a mark of ours, because Material's search strips its own.

    Args:
        content_hash: of the page's source; "" for a page that is left out.
    """
    content = _EXCLUDED.sub(r"\1data-chapterverse-exclude \2", html) if "data-search-exclude" in html else html
    return f'{content}<div hidden {READ_MARK}="{content_hash}"></div>'


def render_starters(meta: Mapping[str, Any]) -> str:
    """Return a hidden HTML element with the starter questions of a page's front matter, "" if it has none.

    Raises:
        ConfigurationError: they are not a list of questions, or it states an unknown content type.
    """
    check_content_type(meta)
    chapterverse_meta = meta.get("chapterverse")
    if not isinstance(chapterverse_meta, dict) or chapterverse_meta.get("starters") is None:
        return ""
    from chapterverse.widget.options import starters_element

    return starters_element(chapterverse_meta["starters"], "chapterverse.")
