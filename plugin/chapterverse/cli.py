"""The command line: results go to standard output (with `--json` exactly one document), all else to standard error.

Exit codes: 0 done, 1 failed, 2 usage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from chapterverse import __version__, progress, serving, states, sync
from chapterverse.errors import ChapterVerseError, InputError
from chapterverse.ledger import open_ledger
from chapterverse.model import Scope, slug
from chapterverse.readers.site import read_site, read_sources
from chapterverse.readers.slugs import SlugRule
from chapterverse.settings import Settings
from chapterverse.store import only_scope, open_store

app = typer.Typer(
    name="chapterverse",
    help="A chat for your documentation site that answers with chapter-and-section citations.",
    epilog="Every flag has an environment variable: --store is CHAPTERVERSE_STORE. Keys come from there only.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Store = Annotated[str | None, typer.Option("--store", help="Where the index lives.", metavar="edge:PATH")]
Site = Annotated[str | None, typer.Option("--site", help="Name of the site's index; needed where there are several.")]
Version = Annotated[str | None, typer.Option("--docs-version", help="Docs version; needed where there are several.")]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help="none, cohere[:MODEL] or fastembed:MODEL-or-PATH.", metavar="NAME")
]
Ledger = Annotated[str | None, typer.Option("--ledger", help="Where file states are kept.", metavar="sqlite:PATH")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


class Slugs(StrEnum):
    """How a generator makes anchors from headings."""

    mkdocs = "mkdocs"
    github = "github"
    vitepress = "vitepress"
    sphinx = "sphinx"


def main() -> None:
    """Run the command line: a user's mistake gets one sentence on standard error and never a traceback."""
    try:
        app()
    except ChapterVerseError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(1)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def index(
    path: Annotated[Path, typer.Argument(help="A built site, or with --source a folder of Markdown.", metavar="PATH")],
    source: Annotated[bool, typer.Option("--source", help="PATH holds Markdown and not HTML.")] = False,
    slugs: Annotated[Slugs, typer.Option("--slugs", help="With --source: how anchors are made.")] = Slugs.mkdocs,
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
    """Make the index hold exactly this site: only what changed is read, and only what is new is embedded."""
    settings = _settings(store, site, docs_version, ledger=ledger, embedder=embedder, base_url=base_url)
    reading = read_site(path, settings.base_url or None) if not source else None
    if reading is None:
        reading = read_sources(path, settings.base_url or None, SlugRule[slugs.name.upper()])
    scope = Scope(settings.site or slug(reading.site), settings.docs_version or "")
    target = sync.Target.open(settings, scope, reading.base_url)
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
    """Show the chunks that answer a question, best first, with their scores."""
    rows = list(_questions(question, questions))
    settings = _settings(store, site, docs_version, embedder=embedder)
    service = serving.load("open")(settings)
    found = [
        {"id": row["id"], "results": service.search(row["question"], top_k, _filters(filters), row.get("history"))}
        for row in rows
    ]
    if as_json:
        _print_json(found)
    else:
        for row, result in zip(rows, found, strict=True):
            Console().print(_table(row["question"], result["results"]))


@app.command()
def ask(
    question: Annotated[str | None, typer.Argument(help="What to ask.", metavar="[QUESTION]")] = None,
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
    """Ask a question, or about a text; the answer comes with its citations, as in the chat."""
    settings = _settings(store, site, docs_version, embedder=embedder)
    service = serving.load("open")(settings)
    answer = service.answer(query=question, selected_text=selected_text, page_url=page_url)
    if as_json:
        _print_json(answer)
        return
    console = Console()
    console.print(Markdown(answer["response"]))
    for place in answer["source_chunks"] or answer["nearest"]:
        name = " › ".join(dict.fromkeys(p for p in (place["chapter"], place["section"]) if p))
        console.print(f"[{place.get('id', '·')}] {name}  {place['url'] or ''}", markup=False, soft_wrap=True)


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
    """Run the API, and with --site-dir the site beside it."""
    settings = _settings(store, site, docs_version, embedder=embedder)
    create_app = serving.load("app")
    listening = serving.bind(host, port)
    here = serving.address(listening)
    if site_dir is not None:
        # The site is read here, so its citations must lead here and not to its published address.
        settings = settings.override(base_url=f"{here}/")
    application = create_app(settings=settings, site_dir=site_dir)
    typer.echo(f"Listening at {here}/ (Ctrl-C ends it)", err=True)
    serving.run(application, listening)


@app.command()
def status(
    path: Annotated[
        Path | None, typer.Argument(help="A built site to compare the index with.", metavar="[PATH]")
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Address of the site at PATH.")] = None,
    ledger: Ledger = None,
    as_json: Json = False,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
) -> None:
    """Show what is indexed and the state of every file: Indexed, Stale, Unindexed, Removed …"""
    settings = _settings(store, site, docs_version, ledger=ledger, base_url=base_url)
    opened = open_store(settings.store)
    scope = only_scope(opened, settings.site, settings.docs_version)
    sources = read_site(path, settings.base_url or None).sources if path else None
    report = states.derive(opened, open_ledger(settings.ledger, settings.store), scope, sources)
    if as_json:
        _print_json(report.to_json())
        return
    console = Console()
    console.print(str(report.summary), markup=False)
    table = Table("State", "File", "Chunks", "Last indexed")
    for file in report.files:
        table.add_row(file.state, file.file_path, str(file.chunk_count), file.last_indexed_at)
    console.print(table)


def _settings(store: str | None, site: str | None, docs_version: str | None, **others: Any) -> Settings:
    return Settings.from_environment(store=store, site=site, docs_version=docs_version, **others)


def _questions(question: str | None, file: Path | None) -> Iterator[dict[str, Any]]:
    """Yield rows with `id` and `question`; a single question is row "1".

    Raises:
        InputError: there is none, or a row is not what it should be; the message names its line.
    """
    if (question is None) == (file is None):
        raise InputError("Give either a QUESTION or --questions FILE.jsonl.")
    if file is None:
        yield {"id": "1", "question": question}
        return
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read as UTF-8 text ({type(error).__name__}).") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _row(line, f"{file}, line {number}")


def _row(line: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        raise InputError(f"{place}: this is not JSON.") from None
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not isinstance(row.get("id"), str):
        raise InputError(f'{place}: a row needs "id" and "question", both strings.')
    return row


def _filters(pairs: list[str] | None) -> dict[str, list[str | int]]:
    filters: dict[str, list[str | int]] = {}
    for pair in pairs or []:
        name, separator, value = pair.partition("=")
        if not separator:
            raise InputError("A --filter needs the form field=value.")
        filters.setdefault(name, []).append(int(value) if name == "chunk_index" and value.isdigit() else value)
    return filters


def _table(question: str, results: list[dict[str, Any]]) -> Table:
    table = Table("#", "Score", "Section", "Address", title=question)
    for row in results:
        name = " › ".join(dict.fromkeys(p for p in (row["chapter"], row["section"]) if p))
        table.add_row(str(row["rank"]), f"{row['score']:.2f}", name, row["url"])
    return table


def _print_json(document: object) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
