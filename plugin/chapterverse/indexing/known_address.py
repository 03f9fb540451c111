"""The address of a site that states none: that of its index. So `--base-url` is said once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from chapterverse.errors import ChapterVerseError, ConfigurationError, InputError
from chapterverse.model import Head
from chapterverse.readers.built_site import read_site
from chapterverse.readers.site_pages import SitePages
from chapterverse.settings import Settings
from chapterverse.store import Store, only_head, open_store


def read_known_site(
    folder: Path,
    settings: Settings,
    include: Iterable[str],
    exclude: Iterable[str],
    read: Callable[..., SitePages] = read_site,
) -> SitePages:
    """Return the pages of a built site, or of what `read` reads, as `read_site` does.

    Raises:
        ConfigurationError: the store can't be opened, or holds these files at several addresses.
    """
    choice = tuple(include), tuple(exclude)
    try:
        return read(folder, settings.base_url or None, *choice)
    except InputError:
        if settings.base_url or not (address := _indexed_address(folder, settings)):
            raise
        # Whatever else is wrong with the site is raised again.
        return read(folder, address, *choice)


def _indexed_address(folder: Path, settings: Settings) -> str:
    """Return the address of the site's index, "" if it can't be read or is of other files."""
    try:
        store = open_store(settings)
        named = (
            h for h in store.heads() if settings.site in ("", h.site) and settings.docs_version in (None, h.version)
        )
        heads = {head.base_url: head for head in named if _is_of(folder, store, head)}
        return only_head([*heads.values()]).base_url if heads else ""
    except ConfigurationError:
        raise
    except ChapterVerseError:
        return ""


def _is_of(folder: Path, store: Store, head: Head) -> bool:
    """Whether a folder has most of the files that an index names."""
    files = store.snapshot(head.scope).values("source_file_path")
    return sum((folder / str(file)).is_file() for file in files) * 2 > len(files)
