"""Command `forget`: removes stored conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from chapterverse.cli import parameters
from chapterverse.cli.parameters import print_json, settings_from
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.conversation.threads import Threads, open_threads

RecordsOption = Annotated[
    str | None,
    typer.Option(
        "--records",
        help="Where conversations are kept: sqlite:PATH, postgresql://HOST/NAME or dynamodb:TABLE.",
        metavar="URI",
    ),
]


def forget(
    thread: Annotated[str | None, typer.Argument(help="Id of a conversation.", metavar="THREAD")] = None,
    older_than: Annotated[
        int | None,
        typer.Option("--older-than", min=0, max=3650, help="Forget everything older.", metavar="DAYS"),
    ] = None,
    records: RecordsOption = None,
    as_json: parameters.Json = False,
) -> None:
    """Forget a conversation, or all old ones.

    A conversation that is not kept is no error.
    """
    if (thread is None) == (older_than is None):
        raise typer.BadParameter("Give either a THREAD or --older-than DAYS.")
    threads = kept_threads(settings_from(None, None, None, records=records))
    removed = threads.expire(older_than or 0) if thread is None else int(threads.forget(thread))
    if as_json:
        print_json({"removed": removed})
    elif thread is None:
        typer.echo(f"{removed} turns, summaries and ratings were forgotten.")
    else:
        typer.echo("The conversation was forgotten." if removed else "Nothing is kept of such a conversation.")


def kept_threads(settings: Settings) -> Threads:
    """Return the stored conversations.

    Raises:
        ConfigurationError: no database is configured.
    """
    threads = open_threads(settings)
    if threads is None:
        raise ConfigurationError("No conversations are kept: CHAPTERVERSE_RECORDS names no database.")
    return threads
