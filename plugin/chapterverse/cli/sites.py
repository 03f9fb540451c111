"""`widget`, `inject` and `check`: the chat in a site of any generator, and what is wrong with a site as built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chapterverse import progress
from chapterverse.built.checking import check as check_site
from chapterverse.built.delivery import TITLE, clean_endpoint, deliver, widget_files
from chapterverse.built.injecting import inject as inject_into
from chapterverse.built.launchers import plain_tag
from chapterverse.cli.options import Json, Ledger, Site, Store, Version, print_json, settings_from
from chapterverse.errors import InputError
from chapterverse.settings import Settings

Endpoint = Annotated[
    str | None, typer.Option("--endpoint", help="Address of the API; / is the site's own origin.", metavar="URL")
]
Title = Annotated[str, typer.Option("--title", help="Heading of the chat and label of its button.")]
Built = Annotated[Path, typer.Argument(help="A built site.", metavar="SITE_DIR")]


def widget(
    folder: Annotated[Path, typer.Argument(help="A folder that the generator copies as it is.", metavar="DIR")],
    endpoint: Endpoint = None,
    title: Title = TITLE,
    as_json: Json = False,
) -> None:
    """Write the chat's files into a folder.

    For a generator that adds a script tag to its pages itself; DIR should hold nothing else.
    """
    files = widget_files(_endpoint(endpoint), title)
    written = deliver(folder, files)
    tag = plain_tag(f"{folder.resolve().name}/launcher.js")
    if as_json:
        print_json({"folder": str(folder), "files": sorted(files), "written": written, "tag": tag})
        return
    typer.echo(
        f"{folder}: {written} of {len(files)} files written. Every page needs this tag, with its own path:", err=True
    )
    typer.echo(tag)


def inject(
    site_dir: Built,
    endpoint: Endpoint = None,
    title: Title = TITLE,
    as_json: Json = False,
) -> None:
    """Put the chat into every page of a built site.

    One script tag before </body>; a second time changes nothing. Run it after each build.
    """
    files = widget_files(_endpoint(endpoint), title)
    with progress.bar() as report:
        done = inject_into(site_dir, files, report)
    for warning in done.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if as_json:
        print_json(done.to_json())
        return
    typer.echo(f"{done.changed} pages changed, {done.unchanged} unchanged, {done.skipped} skipped.", err=True)


def check(
    site_dir: Built,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Address of the site, where its pages don't state it.")
    ] = None,
    no_index: Annotated[bool, typer.Option("--no-index", help="Look at the site alone and not at its index.")] = False,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="Pages to leave out, as in .gitignore; may be repeated.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail for sentences that read like orders to a model, too.")
    ] = False,
    ledger: Ledger = None,
    as_json: Json = False,
    store: Store = None,
    site: Site = None,
    docs_version: Version = None,
) -> None:
    """Say what is wrong with a site as built.

    No chat, dead anchors, secrets in files, a stale index, planted orders. Exits with 3 if there is anything.
    """
    settings = settings_from(store, site, docs_version, ledger=ledger, base_url=base_url)
    with progress.bar() as report:
        found = check_site(site_dir, settings, with_index=not no_index, exclude=exclude or (), progress=report)
    if as_json:
        print_json(found.to_json())
    else:
        for line in found.lines():
            typer.echo(line)
    if found.fail(strict):
        raise typer.Exit(3)


def _endpoint(given: str | None) -> str:
    endpoint = given or Settings.from_environment().endpoint
    if not endpoint:
        raise typer.BadParameter("Give --endpoint URL, or --endpoint / where the API is at the site's own origin.")
    try:
        return clean_endpoint(endpoint) or "/"
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
