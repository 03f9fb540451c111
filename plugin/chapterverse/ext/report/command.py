"""Command `report`: what readers ask, and what the docs lack."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar, warn
from chapterverse.cli.parameters import print_json, settings_from
from chapterverse.errors import ChapterVerseError, IndexFault, InputError
from chapterverse.ext.report.document import make_document
from chapterverse.ext.report.gaps import Searcher
from chapterverse.ext.report.log_lines import LogReading, read_log
from chapterverse.ext.report.markdown import write_gaps, write_markdown
from chapterverse.ext.report.page import write_page
from chapterverse.ext.report.second_asking import ask_again
from chapterverse.ext.report.turns import AskedTurn
from chapterverse.extensions import load
from chapterverse.indexing.plugins.index_run import Log, explain_error
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file
from chapterverse.store import only_scope, open_store

_PAGE = Path("chapterverse-report.html")
_KEPT_TURNS = "chapterverse_api.ext.report.kept_turns:read_kept_turns"


def report(
    log: Annotated[
        list[str] | None,
        typer.Option("--log", help="The service's log; may be repeated, - is standard input.", metavar="FILE"),
    ] = None,
    records: Annotated[
        str | None, typer.Option("--records", help="Where conversations are kept, as for forget.", metavar="URI")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Leave out what was asked before.", metavar="DATE")
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write the page there.", metavar="FILE")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    gaps: Annotated[
        Path | None, typer.Option("--gaps", help="Write what the docs lack as a work list.", metavar="FILE.md")
    ] = None,
    again: Annotated[bool, typer.Option("--ask-again", help="Ask the index anew, and say what is different.")] = False,
    as_json: parameters.Json = False,
    store: parameters.Store = None,
    site: parameters.Site = None,
    docs_version: parameters.Version = None,
) -> None:
    """Show what readers ask, and what the docs lack.

    The questions come from --log, from the kept conversations, or from both. Without --json and --markdown the report
    is a page, chapterverse-report.html. Questions are searched in your index, and no service is asked.

    \b
    chapterverse report --log chat.log
    chapterverse report --since 2026-11-01 --gaps gaps.md
    """
    if as_json and as_markdown:
        raise typer.BadParameter("Give either --json or --markdown.")
    first_day = _parse_day(since)
    settings = settings_from(store, site, docs_version, records=records)
    with progress_bar() as progress:
        turns, notes = read_turns(log or [], settings, first_day, progress)
        searcher = open_searcher(settings)
        document, groups = make_document(turns, searcher, notes, progress)
        if again:
            document["asked_again"] = ask_again(groups, settings, progress)
    if gaps:
        write_file(gaps, write_gaps(groups, searcher))
    if as_json:
        print_json(document)
    if as_markdown:
        typer.echo(write_markdown(document), nl=False)
    if page or not (as_json or as_markdown or gaps):
        write_file(page or _PAGE, write_page(document))


def after_build(settings: Settings, log: Log) -> None:
    """Make the report anew after a build, beside the index, and log what is different. No failure stops the build."""

    def nothing(*_: object) -> None: ...

    try:
        turns, notes = read_turns([], settings, "", nothing) if settings.records else ([], [])
        searcher = open_searcher(settings) if turns else None
        document, groups = make_document(turns, searcher, notes, nothing)
        document["asked_again"] = ask_again(groups, settings, nothing)
        if turns:
            replace_file(settings.local_folder / _PAGE, write_page(document).encode())
        log.info(document["asked_again"]["first"])
    except (ChapterVerseError, OSError) as error:
        log.warning(f"The report was not made: {explain_error(error)}")


def _parse_day(text: str | None) -> str:
    try:
        return str(date.fromisoformat(text)) if text else ""
    except ValueError:
        raise typer.BadParameter("--since is a day, such as 2026-11-01.") from None


def read_turns(
    log: list[str], settings: Settings, first_day: str, progress: Progress
) -> tuple[list[AskedTurn], list[str]]:
    """Return the turns of the log and of the kept conversations since a day, and what was not read.

    Raises:
        InputError: there is neither, or a file can't be read.
        ChapterVerseError: the conversations can't be read.
    """
    if not (log or settings.records):
        raise InputError("There is nothing to report on: name a log by --log, or CHAPTERVERSE_RECORDS.")
    reading = read_log(log, progress)
    kept = load(_KEPT_TURNS)(settings) if settings.records else ()
    for turn in kept:
        known = reading.turns.setdefault(turn.turn_id, turn)
        # The conversations hold the text of a question, and the log what it was answered from.
        known.question = turn.question or known.question
        known.sections = known.sections or turn.sections
        known.is_rated_down = known.is_rated_down or turn.is_rated_down
    return [turn for turn in reading.turns.values() if turn.day >= first_day], _notes(reading)


def _notes(reading: LogReading) -> list[str]:
    sentences = {
        f"{reading.foreign} of {reading.lines} lines of the log are cut, or another program's.": reading.foreign,
        f"{reading.unknown} lines of the log say what this release doesn't know.": reading.unknown,
    }
    return [sentence for sentence, count in sentences.items() if count]


def open_searcher(settings: Settings) -> Searcher | None:
    """Return the index to search in; None with a warning if there is none, or it can't be read."""
    try:
        store = open_store(settings)
        return Searcher(store.snapshot(only_scope(store, settings.site, settings.docs_version, place=settings.store)))
    except IndexFault as error:
        warn(error)
        return None


def write_file(path: Path, text: str) -> None:
    """Write a result, and say so.

    Raises:
        InputError: it can't be written.
    """
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise InputError(f"{path} can't be written: {error.strerror}.") from error
    note(f"Wrote {path}")
