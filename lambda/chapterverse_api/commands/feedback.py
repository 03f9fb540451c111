"""Command `feedback`: prints readers' ratings."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Annotated, Any

import typer

from chapterverse.cli import parameters
from chapterverse.cli.parameters import settings_from
from chapterverse.readers.html.visible_text import collapse, strip_invisible
from chapterverse_api.commands.forget import RecordsOption, kept_threads
from chapterverse_api.records.protocols import StoredRating

# Characters that control a terminal or are invisible; JSON itself escapes only the first 32.
_HOSTILE = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def feedback(
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Number of ratings to print.")] = 100,
    records: RecordsOption = None,
    as_json: parameters.Json = False,
) -> None:
    """Print readers' ratings of answers, newest first.

    If the conversation is kept, the rating comes with the question and the cited pages.
    """
    threads = kept_threads(settings_from(None, None, None, records=records))
    rows = [_document(rating) for rating in threads.ratings(limit)]
    if as_json:
        document = json.dumps(rows, ensure_ascii=False, indent=2)
        typer.echo(_HOSTILE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", document))
        return
    for row in rows:
        typer.echo("\n".join(_lines(row)))
    if not rows:
        typer.echo("No reader has said anything of an answer yet.")


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


def _lines(row: dict[str, Any]) -> list[str]:
    """Return a rating for people, without characters that could control a terminal."""
    head = [row["timestamp"][:16].replace("T", " "), row["rating"], row["reason"], _plain(row["comment"] or "")]
    lines = ["  ".join(filter(None, head))]
    if row["question"]:
        lines.append(f"    {_plain(row['question'])} ({row['status']})")
    lines += [f"    {_plain(place['title'])}  {_plain(place['url'])}" for place in row["cited"]]
    return lines


def _plain(text: str) -> str:
    return strip_invisible(collapse(text))
