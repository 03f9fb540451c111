"""Commands `export`, `import`, `repair` and `unpublish`."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TextIO, Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar, warn
from chapterverse.cli.parameters import option, print_json, settings_from, switch
from chapterverse.embedding import open_embedder
from chapterverse.errors import ConfigurationError, IndexMissing, InputError
from chapterverse.ext.transfer import maintenance
from chapterverse.indexing import index_run
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.settings import Settings
from chapterverse.store import Store, only_scope, open_store

FileArgument = Annotated[
    Path, typer.Argument(help="File of JSON lines; - is standard output or input.", metavar="FILE", allow_dash=True)
]


def export(
    file: FileArgument,
    canonical: bool = switch("--canonical", "Omit what differs between two builds of the same site."),
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Write an index to a file.

    `chapterverse import` reads the file into another store. Canonical files of equal indexes are equal byte for byte.
    """
    index_store, scope = _open(settings_from(**flags))
    snapshot = index_store.snapshot(scope)
    if as_json and _is_dash(file):
        raise InputError("--json prints a document on standard output, where `export -` writes the index: name a file.")
    _write(file, maintenance.export(snapshot, canonical=canonical))
    head = snapshot.head
    note(f"Wrote {head.chunks} chunks of {head.scope} to {_display_name(file, 'standard output')}")
    if as_json:
        print_json({**_name(head), "points": head.chunks})


def import_(
    file: FileArgument,
    base_url: str | None = option("Address of the site, if the file doesn't state it."),
    ledger: parameters.Ledger = None,
    embedder: parameters.Embedder = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Make an index hold exactly the content of a file.

    Nothing is embedded. A canonical file doesn't name its site and embedder: pass --site, and if the file has vectors,
    --embedder.
    """
    settings = settings_from(**flags, ledger=ledger, embedder=embedder, base_url=base_url)
    index_run.require_permission(settings)
    name = _display_name(file, "standard input")
    try:
        with _standard(sys.stdin) if _is_dash(file) else file.open(encoding="utf-8") as lines:
            exported = maintenance.read_export(lines, name)
    except UnicodeDecodeError:
        raise InputError(f"{name} is no UTF-8 text: write one with `chapterverse export`.") from None
    target = Target(
        _scope(settings, exported),
        open_store(settings),
        open_ledger(settings),
        base_url=settings.base_url or exported.base_url,
        made_by=_card(settings, exported),
    )
    with progress_bar() as report:
        result = maintenance.fill(exported, target, report)
    for warning in result.warnings:
        warn(warning)
    note(f"Imported {result.total} chunks of {result.scope}, generation {result.generation}")
    if as_json:
        document = result.to_json()
        print_json({key: document[key] for key in ("site", "version", "generation", "chunks", "embedded")})


def repair(
    ledger: parameters.Ledger = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Remove what no live index uses, and rebuild a lost ledger from the index.

    The live index doesn't change. After a rebuild the next `index` reads every file again and embeds nothing.
    """
    settings = settings_from(**flags, ledger=ledger)
    index_run.require_permission(settings)
    try:
        index_store, scope = _open(settings)
    except IndexMissing:
        # A killed first publication leaves no head, but leftovers to remove.
        if not settings.site:
            raise
        index_store, scope = open_store(settings), Scope(settings.site, settings.docs_version or "")
    result = maintenance.repair(Target(scope, index_store, open_ledger(settings)))
    outcome = f"rebuilt for {result.rebuilt} files" if result.rebuilt else "kept"
    note(f"Removed {result.swept} leftovers, ledger {outcome}")
    if as_json:
        print_json({**_name(result.head), "removed": result.swept, "ledger_files": result.rebuilt})


def unpublish(
    ledger: parameters.Ledger = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Remove a site's index, or that of one docs version, from the store.

    A service that has the index open answers from it until you restart the service.
    """
    settings = settings_from(**flags, ledger=ledger)
    index_run.require_permission(settings)
    index_store, scope = _open(settings)
    maintenance.unpublish(index_store, open_ledger(settings), scope)
    note(f"Removed the index of {scope}.")
    if as_json:
        print_json({"site": scope.site, "version": scope.version})


def _open(settings: Settings) -> tuple[Store, Scope]:
    """Return the store, and the index in it that the settings name."""
    store = open_store(settings)
    return store, only_scope(store, settings.site, settings.docs_version, place=settings.store)


def _name(head: Head) -> dict[str, Any]:
    return {"site": head.site, "version": head.version, "generation": head.generation}


def _scope(settings: Settings, exported: maintenance.ExportFile) -> Scope:
    head, version = exported.head, settings.docs_version
    site = settings.site or (head.site if head else "")
    if not site:
        raise ConfigurationError("A canonical file doesn't say which site it is of: say so with --site.")
    if version is None:
        version = head.version if head else exported.chunks[0].version
    return Scope(site, version)


def _card(settings: Settings, exported: maintenance.ExportFile) -> EmbedderCard:
    if exported.head is not None:
        return exported.head.embedder
    embedder = open_embedder(settings)
    return embedder.card if embedder else EmbedderCard()


def _is_dash(file: Path) -> bool:
    return str(file) == "-"


def _display_name(file: Path, stream: str) -> str:
    return stream if _is_dash(file) else str(file)


def _standard(stream: TextIO) -> contextlib.AbstractContextManager[TextIO]:
    """Return standard input or output as UTF-8, whatever the terminal's encoding is."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="strict", newline="\n")
    return contextlib.nullcontext(stream)


def _write(file: Path, lines: Iterable[str]) -> None:
    """Write a file atomically; write to standard output for "-", a pipe or a terminal directly."""
    if _is_dash(file) or (file.exists() and not file.is_file()):
        with _standard(sys.stdout) if _is_dash(file) else file.open("w", encoding="utf-8") as out:
            out.writelines(lines)
        return
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(lines)
        part.replace(file)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
