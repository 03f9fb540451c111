"""The command line: results go to standard output (with `--json` exactly one document), all else to standard error.

Exit codes: 0 done, 1 failed, 2 usage.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from chapterverse import __version__, progress, serving, states, sync
from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault, InputError
from chapterverse.ledger import open_ledger
from chapterverse.model import Head, Scope, slug
from chapterverse.questions import Asked, read_questions
from chapterverse.readers.site import Reading, read_site, read_sources
from chapterverse.readers.slugs import SlugRule
from chapterverse.settings import Settings
from chapterverse.store import only_scope, open_store

app = typer.Typer(
    name="chapterverse",
    help="A chat for your documentation site that answers with chapter-and-section citations.",
    epilog="Start with `chapterverse index site/`, then `chapterverse ask QUESTION`. Every setting has an environment "
    "variable: --store is CHAPTERVERSE_STORE. Keys come from there only.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain text: a frame around a sentence is in the way of everything that reads it but a person.
    rich_markup_mode=None,
)

Store = Annotated[str | None, typer.Option("--store", help="Where the index lives.", metavar="edge:PATH")]
Site = Annotated[str | None, typer.Option("--site", help="Name of the site's index; needed where there are several.")]
Version = Annotated[str | None, typer.Option("--docs-version", help="Docs version; needed where there are several.")]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help="none, cohere[:MODEL] or fastembed:MODEL-or-PATH.", metavar="NAME")
]
Ledger = Annotated[str | None, typer.Option("--ledger", help="Where file states are kept.", metavar="sqlite:PATH")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: a user's mistake gets one sentence on standard error and never a traceback."""
    try:
        app(arguments)
    except ChapterVerseError as error:
        sys.exit(_failed(str(error)))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.exit(_failed(f"{place}{error.strerror or error}."))


def _failed(sentence: str) -> int:
    typer.echo(f"Error: {sentence}", err=True)
    return 1


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None: ...


@app.command()
def index(
    path: Annotated[Path, typer.Argument(help="A built site, or with --source a folder of Markdown.", metavar="PATH")],
    source: Annotated[bool, typer.Option("--source", help="PATH holds Markdown and not HTML.")] = False,
    slugs: Annotated[SlugRule, typer.Option("--slugs", help="With --source: how anchors are made.")] = SlugRule.MKDOCS,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Address of the site, where its pages don't state it.")
    ] = None,
    ledger: Ledger = None,
    embedder: Embedder = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done and change nothing.")] = False,
    as_json: Json = False,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
) -> None:
    """Make the index hold exactly this site.

    Only what changed is read, only what is new is embedded, and what is gone is removed.
    """
    settings = _settings(store, site, docs_version, ledger=ledger, embedder=embedder, base_url=base_url)
    address = settings.base_url or None
    reading = read_sources(path, address, slugs) if source else read_site(path, address)
    target = sync.Target.open(settings, _scope(settings, reading), reading.base_url)
    with progress.bar() as report:
        run = sync.preview if dry_run else sync.index
        done = run(reading.sources, target, report)
    done = done.warned(reading.warnings)
    for warning in done.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    typer.echo(f"{'Would index' if dry_run else 'Indexed'} {done}", err=True)
    if as_json:
        _print_json(done.to_json())


@app.command()
def search(
    question: Annotated[str | None, typer.Argument(help="What to look for.", metavar="QUESTION")] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", help='A file of {"id", "question"} rows.', metavar="FILE.jsonl")
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", min=1, max=20, help="Results for each question.")] = 5,
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Payload field and value; may be repeated.", metavar="K=V")
    ] = None,
    as_json: Json = False,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
    embedder: Embedder = None,
) -> None:
    """Show the chunks that answer a question.

    Best first, with their evidence from 0 to 1; --questions asks all the questions of a file.
    """
    rows = _questions(question, questions)
    where = _filters(filters or [])
    service = serving.load("open")(_settings(store, site, docs_version, embedder=embedder))
    found = [_searched(row, service, top_k, where) for row in rows]
    if as_json:
        _print_json(found)
        return
    for row, result in zip(rows, found, strict=True):
        typer.echo(f"{row.question}\n")
        for hit in result["results"]:
            typer.echo(f"{hit['rank']:3} {hit['score']:.2f}  {_name(hit)}\n          {hit['url']}")


@app.command()
def ask(
    question: Annotated[str | None, typer.Argument(help="What to ask.", metavar="QUESTION")] = None,
    selected_text: Annotated[
        str | None, typer.Option("--selected-text", help="Answer from this text alone.", metavar="T")
    ] = None,
    page_url: Annotated[str | None, typer.Option("--page-url", help="The page that the text was selected on.")] = None,
    as_json: Json = False,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
    embedder: Embedder = None,
) -> None:
    """Ask a question, or about a text.

    The answer comes with its citations, as in the chat.
    """
    if question is None and selected_text is None:
        raise typer.BadParameter("Give a QUESTION, --selected-text, or both.")
    service = serving.load("open")(_settings(store, site, docs_version, embedder=embedder))
    answer = service.answer(query=question, selected_text=selected_text, page_url=page_url)
    if as_json:
        _print_json(answer)
        return
    _print_markdown(answer["response"])
    cited = {i for segment in answer["segments"] for i in segment["citations"]}
    for place in [s for s in answer["source_chunks"] if s["id"] in cited] or answer["nearest"]:
        typer.echo(f"[{place.get('id', '·')}] {_name(place)}  {place['url'] or ''}")


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8765,
    site_dir: Annotated[
        Path | None, typer.Option("--site-dir", help="A built site to serve on the same origin.", metavar="DIR")
    ] = None,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
    embedder: Embedder = None,
) -> None:
    """Run the API, and the site beside it.

    With --site-dir, citations lead to the site as it is served here.
    """
    settings = _settings(store, site, docs_version, embedder=embedder)
    create_app = serving.load("app")
    with serving.bind(host, port) as listening:
        here = serving.address(listening)
        if site_dir is not None:
            # The site is read here, so its citations must lead here and not to its published address.
            settings = settings.override(base_url=f"{here}/")
            if settings.allowed_origins:
                # A list of origins says nothing of our own, and the site's chat asks from there.
                settings = settings.override(allowed_origins=f"{settings.allowed_origins},{here}")
        application = create_app(settings=settings, site_dir=site_dir)
        try:
            only_scope(open_store(settings.store), settings.site, settings.docs_version)
        except IndexFault as error:
            # It may be indexed while we run: the next question finds it.
            typer.echo(f"Warning: {error}", err=True)
        typer.echo(f"Listening at {here}/ (Ctrl-C ends it)", err=True)
        serving.run(application, listening)


@app.command()
def status(
    path: Annotated[Path | None, typer.Argument(help="A built site to compare the index with.", metavar="PATH")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Address of the site at PATH.")] = None,
    ledger: Ledger = None,
    as_json: Json = False,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
) -> None:
    """Show what is indexed.

    With PATH every file is compared with the index: Indexed, Stale, Unindexed, Removed.
    """
    settings = _settings(store, site, docs_version, ledger=ledger, base_url=base_url)
    opened = open_store(settings.store)
    scope = only_scope(opened, settings.site, settings.docs_version)
    sources = read_site(path, settings.base_url or None).sources if path else None
    report = states.derive(opened, open_ledger(settings.ledger, settings.store), scope, sources)
    if as_json:
        _print_json(report.to_json())
        return
    typer.echo(report.summary)
    for file in report.files:
        typer.echo(f"{file.state:12} {file.chunk_count:5} chunks  {file.last_indexed_at:20}  {file.file_path}")


def _settings(store: str | None, site: str | None, docs_version: str | None, **others: Any) -> Settings:
    return Settings.from_environment(store=store, site=site, docs_version=docs_version, **others)


def _scope(settings: Settings, reading: Reading) -> Scope:
    """Return what to index into: by name, else what holds the site at that address, else named by the address."""
    heads: list[Head] = []
    # A damaged head names nothing, and is replaced by what is about to be indexed.
    with contextlib.suppress(IndexCorrupt):
        heads = open_store(settings.store).heads()
    known = {h.site for h in heads if h.base_url.rstrip("/") + "/" == reading.base_url}
    site = settings.site or (known.pop() if len(known) == 1 else slug(reading.site))
    return Scope(site, settings.docs_version or "")


def _questions(question: str | None, file: Path | None) -> list[Asked]:
    """Return what to search for; a single question is row "1"."""
    if file is not None and question is None:
        return read_questions(file)
    if question is None or file is not None:
        raise typer.BadParameter("Give either a QUESTION or --questions FILE.jsonl.")
    return [Asked("1", question)]


def _searched(row: Asked, service: Any, top_k: int, filters: dict[str, list[str | int]]) -> dict[str, Any]:
    try:
        return {"id": row.id, "results": service.search(row.question, top_k, filters, row.history)}
    except InputError as error:
        # A filter is the same for all rows; anything else is this row's own.
        if row.place and error.field != "filters":
            raise InputError(f"{row.place}: {error}") from None
        raise


def _filters(pairs: list[str]) -> dict[str, list[str | int]]:
    filters: dict[str, list[str | int]] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise typer.BadParameter("A --filter needs the form field=value.")
        filters.setdefault(name, []).append(int(value) if name == "chunk_index" and value.isdecimal() else value)
    return filters


def _name(place: dict[str, Any]) -> str:
    return " › ".join(dict.fromkeys(p for p in (place["chapter"], place["section"]) if p))


def _print_markdown(text: str) -> None:
    if not sys.stdout.isatty():
        typer.echo(f"{text}\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text), "")


def _print_json(document: object) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
