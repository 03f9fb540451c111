"""The address of a site that states none: that of its index. So `--base-url` is said once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from chapterverse.errors import ChapterVerseError, InputError
from chapterverse.readers.sources.built_site import read_site
from chapterverse.readers.sources.site_pages import SitePages
from chapterverse.settings import Settings
from chapterverse.store import only_head, open_store


def read_known_site(folder: Path, settings: Settings, include: Iterable[str], exclude: Iterable[str]) -> SitePages:
    """Return the pages of a built site, as `read_site` does."""
    choice = tuple(include), tuple(exclude)
    try:
        return read_site(folder, settings.base_url or None, *choice)
    except InputError:
        address = "" if settings.base_url else _indexed_address(folder, settings)
        if not address:
            raise
        # Whatever else is wrong with the site is raised again.
        return read_site(folder, address, *choice)


def _indexed_address(folder: Path, settings: Settings) -> str:
    """Return the address of the site's index, "" if it can't be read or is of other files."""
    with contextlib.suppress(ChapterVerseError):
        store = open_store(settings)
        head = only_head(store.heads(), settings.site, settings.docs_version)
        files = store.snapshot(head.scope).values("source_file_path")
        if sum((folder / str(file)).is_file() for file in files) * 2 > len(files):
            return head.base_url
    return ""
