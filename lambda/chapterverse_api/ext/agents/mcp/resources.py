"""Pages of the documentation as resources of the Model Context Protocol: by their addresses, as Markdown."""

from __future__ import annotations

from typing import Any

from chapterverse.errors import InputError
from chapterverse.model import PAGE, Chunk
from chapterverse.store import Snapshot
from chapterverse_api.ext.agents.tools.sections import find_page, markdown
from chapterverse_api.index.site_index import SiteIndex

_MARKDOWN = "text/markdown"
#: Pages of one list: on a remote store each is a request.
_MAX_LIST_PAGES = 50


def page_list(cursor: object, index: SiteIndex) -> dict[str, Any]:
    """Return some pages as `resources`, by file path, and the `nextCursor` if there are more.

    Args:
        cursor: the cursor of the list before, None for the first.

    Raises:
        InputError: the cursor is not one that a list has returned.
        IndexFault: no index can be read.
    """
    snapshot = index.snapshot()
    places = [str(place) for place in snapshot.values("source_file_path")]
    start = _start(cursor, len(places))
    first = (_first_chunk(place, snapshot) for place in places[start : start + _MAX_LIST_PAGES])
    more = {"nextCursor": str(start + _MAX_LIST_PAGES)} if start + _MAX_LIST_PAGES < len(places) else {}
    return {"resources": [_resource(chunk, snapshot, index) for chunk in first if chunk], **more}


def _start(cursor: object, count: int) -> int:
    if cursor is None:
        return 0
    if isinstance(cursor, str) and cursor.isascii() and cursor.isdecimal() and len(cursor) < 10 and int(cursor) < count:
        return int(cursor)
    raise InputError("There is no such cursor: begin with the first list again.")


def _first_chunk(place: str, snapshot: Snapshot) -> Chunk | None:
    # The persona, FAQ entries and memories have no page of their own.
    return next((chunk for chunk in snapshot.page(place) if chunk.type == PAGE), None)


def _resource(chunk: Chunk, snapshot: Snapshot, index: SiteIndex) -> dict[str, Any]:
    url = index.public_url(chunk, snapshot.head).partition("#")[0]
    return {"uri": url, "name": chunk.source_file_path, "title": chunk.chapter_title, "mimeType": _MARKDOWN}


def page_resource(uri: str, index: SiteIndex) -> dict[str, str]:
    """Return a page, or the section that the URI's anchor names, as Markdown.

    Raises:
        InputError: the documentation has no such page.
        IndexFault: no index can be read.
    """
    _, sections = find_page(uri, index)
    return {"uri": uri, "mimeType": _MARKDOWN, "text": markdown(sections)}
