"""Adds one file or address to an index, for the command `index`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urljoin

from chapterverse.cli.messages import note, progress_bar, warn
from chapterverse.errors import InputError
from chapterverse.ext.sources.entries import parse_entries
from chapterverse.ext.sources.external_sources import collect_external
from chapterverse.indexing.additions import keep_all
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.model import Scope, slug
from chapterverse.readers.urls import is_web_address, parse_base_url
from chapterverse.settings import Settings
from chapterverse.store import only_head, open_store

_CHUNK_TOKENS = re.compile(r"\bchunks/(\d+)/")


def add_source(place: str, settings: Settings, run: Callable[..., Report]) -> Report:
    """Add one file or address to an index, or begin one with it; everything else in the index stays.

    Raises:
        InputError: it can't be read, or the index was made with another release or embedder.
    """
    heads = open_store(settings).heads()
    head = only_head(heads, settings.site, settings.docs_version) if heads else None
    file = None if is_web_address(place) else Path(place)
    base_url = head.base_url if head else parse_base_url(settings.base_url or ("" if file else urljoin(place, "/")))
    if not base_url:
        raise InputError("A file doesn't say where it is published: pass --base-url.")
    scope = head.scope if head else Scope(settings.site or slug(base_url), settings.docs_version or "")
    (entry,) = parse_entries([str(file.absolute()) if file else place], file.parent if file else Path())
    if file:
        published = parse_base_url(settings.base_url) or base_url
        name = file.name if file.is_absolute() else file.as_posix()
        entry = replace(entry, name=name, url=urljoin(published, quote(file.name)))
        note(f"{place} is cited at {entry.url}; --base-url names another folder.")
    external = collect_external(settings.override(also=(entry,)), (), base_url, None)
    # Chunks of another size would change in the next run.
    tokens = _CHUNK_TOKENS.search(head.pipeline) if head else None
    target = Target.open(settings, scope, base_url, *([int(tokens[1])] if tokens else []))
    if head and not target.matches(head):
        raise InputError("The index was made by another release or embedder: index the whole site first.")
    if not external.sources:
        raise InputError(next(iter(external.warnings), f"{place} holds nothing to index."))
    with progress_bar() as report:
        result = run(external.sources, target, report, keep_all)
    note(f"{place} stays until the next run for the site; --also or the option `also` keeps it.")
    result = result.after(external.warnings, external.left_out)
    for warning in result.warnings:
        warn(warning)
    return result
