"""Command `report`: what readers ask, and what the docs lack."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar, warn
from chapterverse.cli.parameters import option, print_json, settings_from, switch
from chapterverse.errors import IndexFault, InputError
from chapterverse.ext.report.document import make_document
from chapterverse.ext.report.groups import Searcher
from chapterverse.ext.report.rendering import write_gaps, write_markdown, write_page
from chapterverse.ext.report.second_asking import ask_again, is_current, write_file
from chapterverse.ext.report.turns import AskedTurn, read_log, read_records
from chapterverse.extensions import load_part
from chapterverse.indexing.index_run import Log
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.store import only_scope, open_store

_PAGE = Path("chapterverse-report.html")


def report(
    log: list[str] | None = option("The service's log; may be repeated, - is standard input.", "FILE"),
    records: str | None = option("Where conversations are kept, as for forget.", "URI"),
    since: str | None = option("Leave out what was asked before.", "DATE"),
    page: Path | None = option("Write the page there.", "FILE", name="--html"),
    as_markdown: bool = switch("--markdown", "Print Markdown."),
    gaps: Path | None = option("Write what the docs lack as a work list.", "FILE.md"),
    again: bool = switch("--ask-again", "Ask the index anew, and say what is different."),
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.IndexFlags],
) -> None:
    """Show what readers ask, and what the docs lack.

    The questions come from --log, from --records, or from both; without either from CHAPTERVERSE_RECORDS. Without
    --json and --markdown the report is a page, chapterverse-report.html. Questions are searched in your index, and no
    service is asked. Only --ask-again sends the questions, masked, to the embedder of an index with vectors.

    \b
    chapterverse report --log chat.log
    chapterverse report --since 2026-11-01 --gaps gaps.md
    """
    if as_json and as_markdown:
        raise typer.BadParameter("Give either --json or --markdown.")
    first_day = _parse_day(since)
    page = page or (None if as_json or as_markdown else _PAGE)
    _check_folders(page, gaps)
    settings = settings_from(**flags, records=records)
    with progress_bar() as progress:
        # A log alone is reported alone, whatever the environment names.
        kept = _read_kept(settings) if records or not log else []
        turns, notes = _read_turns(log or [], kept, first_day, progress)
        searcher = None
        try:
            searcher = _open_searcher(settings)
        except IndexFault as error:
            if gaps or again:
                raise
            warn(error)
        document, groups = make_document(turns, searcher, notes, progress)
        keep = None
        if again and searcher:
            document["asked_again"], keep = ask_again(groups, searcher, settings, progress)
    if as_json:
        print_json(document)
    if as_markdown:
        typer.echo(write_markdown(document), nl=False)
    for file, write in ((gaps, partial(write_gaps, groups, searcher)), (page, partial(write_page, document))):
        if file:
            write_file(file, write())
            note(f"Wrote {file}")
    # Last, so that no difference is lost if one of these can't be written.
    if keep:
        keep()


def after_build(settings: Settings, log: Log) -> None:
    """Make the report beside the index anew if that changed, or a question of it is kept no more. Log the differences.

    Whoever calls it logs any failure.
    """
    if settings.secrets_arn:
        settings = load_part("secrets_arn")(settings, log.warning)
    # Of several versions, that which was built.
    settings = settings.override(docs_version=settings.docs_version or "")
    page = settings.local_folder / _PAGE
    turns = read_records(settings)
    searcher = _open_searcher(settings)
    if page.exists() and is_current(searcher, turns, settings):
        return
    # It quotes what is forgotten, so it goes even if the next one fails.
    page.unlink(missing_ok=True)
    document, groups = make_document(turns, searcher, [], lambda *_: None)
    document["asked_again"], keep = ask_again(groups, searcher, settings, lambda *_: None)
    if turns:
        write_file(page, write_page(document), is_private=True)
    keep()
    log.info(document["asked_again"]["first"])


def _parse_day(text: str | None) -> str:
    try:
        return str(date.fromisoformat(text)) if text else ""
    except ValueError:
        raise typer.BadParameter("--since is a day, such as 2026-11-01.") from None


def _check_folders(*files: Path | None) -> None:
    for file in filter(None, files):
        if not file.absolute().parent.is_dir():
            raise InputError(f"{file} can't be written: there is no such folder.")


def _read_kept(settings: Settings) -> list[AskedTurn]:
    """Return the turns of the kept conversations. Raises `ChapterVerseError` if there are none or none can be read."""
    if not settings.records:
        raise InputError("There is nothing to report on: name a log by --log, or CHAPTERVERSE_RECORDS.")
    if not (kept := read_records(settings)):
        raise InputError("No conversation is kept where --records or CHAPTERVERSE_RECORDS says.")
    return kept


def _read_turns(
    log: list[str], records: Iterable[AskedTurn], first_day: str, progress: Progress
) -> tuple[list[AskedTurn], list[str]]:
    """Return the turns of the log and the kept ones since a day, and what was not read. Raises as `read_log`."""
    reading = read_log(log, progress)
    for turn in records:
        known = reading.turns.setdefault(turn.turn_id, turn)
        # The log may have lost the beginning of a turn, or its end.
        for name in ("thread", "at", "question", "status", "sections"):
            setattr(known, name, getattr(known, name) or getattr(turn, name))
        known.is_rated_down = turn.is_rated_down
    return [turn for turn in reading.turns.values() if turn.day >= first_day], reading.notes


def _open_searcher(settings: Settings) -> Searcher:
    """Return the index to search in. Raises `IndexFault` if there is none, or it can't be read."""
    store = open_store(settings)
    return Searcher(store.snapshot(only_scope(store, settings.site, settings.docs_version, place=settings.store)))
