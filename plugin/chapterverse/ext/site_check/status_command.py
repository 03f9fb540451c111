"""The command `status`: shows the state of an index and of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.index import KnowledgeOption, PersonaOption, SlugsOption, SourceOption, read_folder, site_scope
from chapterverse.cli.parameters import argument, option, print_json, settings_from
from chapterverse.errors import IndexMissing
from chapterverse.ext.site_check.status import States, derive
from chapterverse.extensions import load_part
from chapterverse.ledger import open_ledger
from chapterverse.model import FAQ
from chapterverse.readers.urls import SiteGenerator
from chapterverse.store import only_head, open_store


def status(
    path: Path | None = argument("Folder to compare with the index: a built site, or Markdown.", "PATH"),
    source: SourceOption = False,
    slugs: SlugsOption = SiteGenerator.MKDOCS,
    base_url: str | None = option("Address of the site at PATH."),
    exclude: parameters.Exclude = None,
    include: parameters.Include = None,
    persona: PersonaOption = None,
    knowledge: KnowledgeOption = None,
    ledger: parameters.Ledger = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Show what is indexed.

    With PATH, also show each file's state: Indexed, Stale, Unindexed or Removed; during a publication also Indexing or
    Re-indexing. Use the options of your `index` run.
    """
    settings = settings_from(**flags, ledger=ledger, base_url=base_url, persona=persona, knowledge=knowledge)
    index_store = open_store(settings)
    try:
        head = only_head(index_store.heads(), settings.site, settings.docs_version, place=settings.store)
    except IndexMissing:
        # The files of a folder have states before the first publication too.
        if path is None:
            raise
        head = None
    if path is None:
        assert head is not None
        scope, sources = head.scope, None
    else:
        is_source = source or _is_markdown(path)
        # Markdown doesn't state its address, but the index does.
        if is_source and not settings.base_url and head:
            settings = settings.override(base_url=head.base_url)
        reading, documents = read_folder(path, slugs if is_source else None, settings, include, exclude)
        scope = head.scope if head else site_scope(settings, reading)[0]
        sources = [*reading.sources, *documents.sources(reading.sources, reading.base_url)[0]]
    report = derive(index_store, open_ledger(settings), scope, sources)
    unmatched = None
    if settings.records and head and FAQ in (snapshot := index_store.snapshot(scope)).values("type"):
        unmatched = load_part("unmatched_entries")(settings, snapshot)
    if as_json:
        print_json(report.to_json() | ({} if unmatched is None else {"unmatched_faq": unmatched}))
    else:
        _print_states(report, unmatched)


def _print_states(report: States, entries: list[str] | None) -> None:
    typer.echo(report.summary)
    for file in report.files:
        typer.echo(f"{file.state:12} {file.chunk_count:5} chunks  {file.last_indexed_at:20}  {file.file_path}")
    if entries:
        typer.echo("FAQ entries that answered no question of the last 30 days:")
    for name in entries or ():
        typer.echo(f"  {name}")


def _is_markdown(path: Path) -> bool:
    """Whether a folder holds Markdown and no page of a built site."""
    return path.is_dir() and not any(path.rglob("*.htm*")) and any(path.rglob("*.md*"))
