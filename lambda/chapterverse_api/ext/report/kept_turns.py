"""Reads the questions of all kept conversations. What is forgotten or expired is not among them."""

from __future__ import annotations

from collections.abc import Iterator

from chapterverse.ext.report.turns import STATUSES, AskedTurn
from chapterverse.settings import Settings
from chapterverse_api.ext.conversations.records import open_records


def read_kept_turns(settings: Settings) -> Iterator[AskedTurn]:
    """Yield the turns that `settings.records` names, with their ratings.

    Raises:
        ConfigurationError: it names no database.
        RecordsFault: the database can't be reached or used.
    """
    records = open_records(settings)
    for thread, at, turn, rating in records.turns() if records else ():
        yield AskedTurn(
            turn.turn_id,
            thread=thread,
            at=at,
            question=turn.question,
            status=STATUSES.get(turn.status),
            sections=tuple(place.url for place in turn.cited),
            is_rated_down=rating == "down",
        )
