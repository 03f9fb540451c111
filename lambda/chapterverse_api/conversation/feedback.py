"""Logs a reader's rating, and stores it if conversations are stored."""

from __future__ import annotations

from typing import Any

from chapterverse_api.contract import Feedback
from chapterverse_api.conversation.threads import Threads
from chapterverse_api.observability import log
from chapterverse_api.records.protocols import StoredRating


def take(rating: Feedback, threads: Threads | None, *, log_comment: bool) -> None:
    """Log a rating first, so that no failure loses it, and then store it.

    Args:
        threads: the stored conversations; None if none are stored.
        log_comment: whether the operator wants to read readers' words in the log.

    Raises:
        RecordsFault: it could not be stored.
    """
    comment = rating.comment or ""
    words: dict[str, Any] = {"comment": comment} if log_comment and comment else {}
    log.event(
        "feedback_received",
        turn_id=rating.turn_id,
        rating=rating.rating,
        reason=rating.reason,
        characters=len(comment),
        **words,
    )
    if threads:
        threads.rate(StoredRating(rating.turn_id, rating.rating, rating.reason or "", comment))
