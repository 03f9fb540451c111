"""Commands `feedback` and `forget`: print readers' ratings, and remove stored conversations."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chapterverse.cli import parameters
from chapterverse.cli.parameters import argument, option, print_json, settings_from
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.ext.conversations.threads import Threads, open_threads

if TYPE_CHECKING:
    from chapterverse_api.ext.conversations.records import StoredRating

# Characters that control a terminal or are invisible; JSON itself escapes only the first 32.
_HOSTILE = "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"

RecordsOption = Annotated[
    str | None,
    typer.Option(
        "--records",
        help="Where conversations are kept: sqlite:PATH, postgresql://HOST/NAME or dynamodb:TABLE.",
        metavar="URI",
    ),
]


def feedback(
    limit: int = option("Number of ratings to print.", default=100, min=1, max=100_000),
    records: RecordsOption = None,
    as_json: parameters.Json = False,
) -> None:
    """Print readers' ratings of answers, newest first.

    If the conversation is kept, the rating comes with the question and the cited pages.
    """
    threads = _kept_threads(settings_from(records=records))
    rows = [_document(rating) for rating in threads.ratings(limit)]
    if as_json:
        document = json.dumps(rows, ensure_ascii=False, indent=2)
        typer.echo(re.sub(_HOSTILE, lambda sign: f"\\u{ord(sign[0]):04x}", document))
        return
    for row in rows:
        _print_for_people(row)
    if not rows:
        typer.echo("No reader has said anything of an answer yet.")


def forget(
    thread: str | None = argument("Id of a conversation.", "THREAD"),
    older_than: int | None = option("Forget everything older.", "DAYS", min=0, max=3650),
    records: RecordsOption = None,
    as_json: parameters.Json = False,
) -> None:
    """Forget a conversation, or all old ones.

    A conversation that is not kept is no error.
    """
    if (thread is None) == (older_than is None):
        raise typer.BadParameter("Give either a THREAD or --older-than DAYS.")
    threads = _kept_threads(settings_from(records=records))
    removed = threads.expire(older_than or 0) if thread is None else int(threads.forget(thread))
    if as_json:
        print_json({"removed": removed})
    elif thread is None:
        typer.echo(f"{removed} turns, summaries and ratings were forgotten.")
    else:
        typer.echo("The conversation was forgotten." if removed else "Nothing is kept of such a conversation.")


def _kept_threads(settings: Settings) -> Threads:
    threads = open_threads(settings)
    if threads is None:
        raise ConfigurationError("No conversations are kept: CHAPTERVERSE_RECORDS names no database.")
    return threads


def _document(rating: StoredRating) -> dict[str, Any]:
    """Return a rating as JSON; missing values are None."""
    turn = rating.turn
    return {
        "turn_id": rating.turn_id,
        "timestamp": rating.at,
        "rating": rating.rating,
        "reason": rating.reason or None,
        "comment": rating.comment or None,
        "question": turn.question if turn else None,
        "status": turn.status if turn else None,
        "cited": [asdict(place) for place in turn.cited] if turn else [],
    }


def _print_for_people(row: dict[str, Any]) -> None:
    """Print a rating without characters that could control a terminal."""
    # No other command loads the reader of pages.
    from chapterverse.readers.html.visible_text import collapse, strip_invisible

    def plain(text: str) -> str:
        return strip_invisible(collapse(text))

    head = [row["timestamp"][:16].replace("T", " "), row["rating"], row["reason"], plain(row["comment"] or "")]
    typer.echo("  ".join(filter(None, head)))
    if row["question"]:
        typer.echo(f"    {plain(row['question'])} ({row['status']})")
    for place in row["cited"]:
        typer.echo(f"    {plain(place['title'])}  {plain(place['url'])}")
