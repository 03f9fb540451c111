"""Commands `index` and `status`: update an index from its site, and show the state of its files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Unpack
from urllib.parse import quote, urljoin

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar, warn
from chapterverse.cli.parameters import argument, option, print_json, project_options, settings_from, switch
from chapterverse.errors import IndexCorrupt, IndexMissing, InputError
from chapterverse.extensions import load_part
from chapterverse.external_entries import is_web_address, parse_entries
from chapterverse.indexing import publish_policy, sync
from chapterverse.indexing import status as states
from chapterverse.indexing.diff import keep_all
from chapterverse.indexing.documents import Documents, find_documents
from chapterverse.indexing.known_address import read_known_site
from chapterverse.indexing.plugins.index_run import collect_external
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import FAQ, Head, Scope, slug
from chapterverse.readers.built_site import read_site
from chapterverse.readers.site_generator import SiteGenerator
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import clean_base, parse_base_url
from chapterverse.settings import Settings
from chapterverse.site import starters
from chapterverse.store import only_head, open_store

_CHUNK_TOKENS = re.compile(r"\bchunks/(\d+)/")

PersonaOption = Annotated[
    str | None,
    typer.Option("--persona", help="File that tells the chat how to speak; default persona.md.", metavar="FILE"),
]
KnowledgeOption = Annotated[
    str | None,
    typer.Option(
        "--knowledge", help="Folder of FAQ and memory files; with --source, default PATH/knowledge.", metavar="DIR"
    ),
]

SourceOption = Annotated[bool, typer.Option("--source", help="PATH holds Markdown or MDX instead of HTML.")]
SlugsOption = Annotated[SiteGenerator, typer.Option("--slugs", help="With --source: whose rules make anchors.")]


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
        also=parse_entries(also, Path()) if also else None,
    )
    if not dry_run:
        publish_policy.require_permission(settings)
    run = sync.preview if dry_run else sync.index
    if is_web_address(path) or Path(path).is_file():
        if source or exclude or include or persona or knowledge or also:
            raise InputError("One file or address takes no option of a folder, such as --source or --exclude.")
        result = _add(path, settings, run)
    else:
        reading, documents = _read(Path(path), slugs if source else None, settings, include, exclude)
        result = _index_site(reading, documents, settings, run)
        if not dry_run and (file := Path(path, starters.PATH)).is_file():
            starters.write(file, settings.override(publish=True), reading.base_url, warn)
    _print(result, dry_run=dry_run, as_json=as_json)


def _read(
    folder: Path,
    slugs: SiteGenerator | None,
    settings: Settings,
    include: list[str] | None,
    exclude: list[str] | None,
) -> tuple[SitePages, Documents]:
    """Read a built site, or by `slugs` a folder of Markdown, and list the persona, FAQ and memories that go with it."""
    documents = find_documents(settings, folder if slugs else None, Path())
    project = project_options()
    patterns = include or project.include, exclude or project.exclude
    read = partial(load_part("markdown_folder"), generator=slugs, no_pages=documents.no_pages) if slugs else read_site
    return read_known_site(folder, settings, *patterns, read), documents


def _index_site(reading: SitePages, documents: Documents, settings: Settings, run: Callable[..., Report]) -> Report:
    """Make the index hold these pages, their documents and the entries of `--also`, and nothing else."""
    document_sources, warnings = documents.sources(reading.sources, reading.base_url)
    external = collect_external(settings, reading.sources, reading.base_url, documents.docs)
    scope, other_sites = site_scope(settings, reading)
    tokens, workers = project_options().chunk_tokens, min(4, os.cpu_count() or 1)
    target = Target.open(settings, scope, reading.base_url, tokens, workers)
    with progress_bar() as report:
        result = run((*reading.sources, *document_sources, *external.sources), target, report, external.keep)
    if other_sites:
        warn(
            f"the store holds {', '.join(sorted(other_sites))} too. If that is this site at another address, "
            "index it with --site; from now on every command needs --site."
        )
    result = result.after((*reading.warnings, *warnings, *external.warnings), {**reading.left_out, **external.left_out})
    for line in result.left_out_lines():
        note(line)
    return result


def _add(place: str, settings: Settings, run: Callable[..., Report]) -> Report:
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
    return result.after(external.warnings, external.left_out)


def _print(result: Report, *, dry_run: bool, as_json: bool) -> None:
    for warning in result.warnings:
        warn(warning)
    for line in result.diff_lines() if dry_run else ():
        note(line)
    note(f"{'Would index' if dry_run else 'Indexed'} {result}")
    if as_json:
        print_json({**result.to_json(), "plan": result.diff_json()} if dry_run else result.to_json())


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
        reading, documents = _read(path, slugs if is_source else None, settings, include, exclude)
        scope = head.scope if head else site_scope(settings, reading)[0]
        sources = [*reading.sources, *documents.sources(reading.sources, reading.base_url)[0]]
    report = states.derive(index_store, open_ledger(settings), scope, sources)
    unmatched = None
    if settings.records and head and FAQ in (snapshot := index_store.snapshot(scope)).values("type"):
        unmatched = load_part("unmatched_entries")(settings, snapshot)
    if as_json:
        print_json(report.to_json() | ({} if unmatched is None else {"unmatched_faq": unmatched}))
    else:
        _print_states(report, unmatched)


def _print_states(report: states.States, entries: list[str] | None) -> None:
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
