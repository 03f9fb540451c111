"""The command `index`: updates an index from its site."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import LOG, note, progress_bar, warn
from chapterverse.cli.parameters import argument, option, print_json, project_options, settings_from, switch
from chapterverse.errors import IndexCorrupt, InputError
from chapterverse.extensions import load_part
from chapterverse.indexing import index_run, sync
from chapterverse.indexing.additions import Documents, find_documents
from chapterverse.indexing.index_run import Site, index_site, read_known_site
from chapterverse.indexing.report import Report
from chapterverse.model import Head, Scope, slug
from chapterverse.readers.built_site import read_site
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import SiteGenerator, clean_base, is_web_address
from chapterverse.settings import Settings
from chapterverse.site import starters
from chapterverse.store import open_store

PersonaOption = Annotated[
    str | None, typer.Option(help="File that tells the chat how to speak; default persona.md.", metavar="FILE")
]
KnowledgeOption = Annotated[
    str | None,
    typer.Option(help="Folder of FAQ and memory files; with --source, default PATH/knowledge.", metavar="DIR"),
]

SourceOption = Annotated[bool, typer.Option("--source", help="PATH holds Markdown or MDX instead of HTML.")]
SlugsOption = Annotated[SiteGenerator, typer.Option(help="With --source: whose rules make anchors.")]


def index(
    path: str = argument(
        "A built site; with --source a folder of Markdown or MDX; or one file or address to add.",
        "PATH|FILE|URL",
        default=...,
    ),
    source: SourceOption = False,
    slugs: SlugsOption = SiteGenerator.MKDOCS,
    base_url: parameters.BaseUrl = None,
    exclude: parameters.Exclude = None,
    include: parameters.Include = None,
    also: list[str] | None = option("A file, an address or a sitemap beyond the site; may be repeated.", "FILE|URL"),
    persona: PersonaOption = None,
    knowledge: KnowledgeOption = None,
    ledger: parameters.Ledger = None,
    embedder: parameters.Embedder = None,
    dry_run: bool = switch("--dry-run", "Print what a run would do, and change nothing."),
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Update the index to hold exactly this site.

    Reads only changed pages, embeds only new text, and removes deleted pages. A single file or address is added, and
    the next run removes it; to keep it, use --also.
    """
    settings = settings_from(
        **flags,
        ledger=ledger,
        embedder=embedder,
        base_url=base_url,
        persona=persona,
        knowledge=knowledge,
        also=load_part("also_entries")(also, Path()) if also else None,
    )
    if not dry_run:
        index_run.require_permission(settings)
    if is_web_address(path) or Path(path).is_file():
        if source or exclude or include or persona or knowledge or also:
            raise InputError("One file or address takes no option of a folder, such as --source or --exclude.")
        result = load_part("single_source")(path, settings, sync.preview if dry_run else sync.index)
    else:
        reading, documents = read_folder(Path(path), slugs if source else None, settings, include, exclude)
        result = _index_site(reading, documents, settings, dry_run=dry_run)
        if not dry_run and (file := Path(path, starters.PATH)).is_file():
            starters.write(file, settings.override(publish=True), reading.base_url, warn)
    for line in result.diff_lines() if dry_run else ():
        note(line)
    note(f"{'Would index' if dry_run else 'Indexed'} {result}")
    if as_json:
        print_json({**result.to_json(), "plan": result.diff_json()} if dry_run else result.to_json())


def read_folder(
    folder: Path,
    slugs: SiteGenerator | None,
    settings: Settings,
    include: list[str] | None,
    exclude: list[str] | None,
) -> tuple[SitePages, Documents]:
    """Read a built site, or by `slugs` a folder of Markdown, and list the persona, FAQ and memories that go with it."""
    documents = find_documents(settings, folder if slugs else None, Path())
    project = project_options()
    read = partial(load_part("markdown_folder"), generator=slugs, no_pages=documents.no_pages) if slugs else read_site
    pages = read_known_site(
        folder, settings, include=include or project.include, exclude=exclude or project.exclude, read=read
    )
    return pages, documents


def _index_site(reading: SitePages, documents: Documents, settings: Settings, *, dry_run: bool) -> Report:
    scope, other_sites = site_scope(settings, reading)
    site = Site(reading, documents, settings.override(site=scope.site), project_options().chunk_tokens)
    result = index_site(site, LOG, dry_run=dry_run, workers=min(4, os.cpu_count() or 1), bar=progress_bar)
    if other_sites:
        warn(
            f"the store holds {', '.join(sorted(other_sites))} too. If that is this site at another address, "
            "index it with --site; from now on every command needs --site."
        )
    return result


def site_scope(settings: Settings, reading: SitePages) -> tuple[Scope, set[str]]:
    """Return the scope to index, and the store's other sites if this is a new one without --site.

    The site is --site, else the one indexed at that address, else named by the address.
    """
    heads: list[Head] = []
    # A damaged head has no name, and this run replaces it.
    with contextlib.suppress(IndexCorrupt):
        heads = open_store(settings).heads()
    here = {head.site for head in heads if clean_base(head.base_url) == reading.base_url}
    site = settings.site or (here.pop() if len(here) == 1 else slug(reading.site))
    others = {head.site for head in heads}
    return Scope(site, settings.docs_version or ""), set() if settings.site or site in others else others
