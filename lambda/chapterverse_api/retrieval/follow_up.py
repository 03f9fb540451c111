"""Searches for a question alone, and for one that can't stand alone, together with the conversation's subject.

A follow-up ("and on Windows?") is found by two searches: for the question alone, and for the question behind the last
one. Their scores are added. Measured on 132 later turns of human conversations (mtrag-human): a page that answers is
among the sources of .75 (.68 without the conversation); behind the beginning of the last answer, or both, fewer.
"""

from __future__ import annotations

from collections.abc import Callable

from chapterverse_api.conversation.follow_ups import BackReference
from chapterverse_api.conversation.history import Subject
from chapterverse_api.retrieval.answerability import held_share
from chapterverse_api.retrieval.search import Retrieval, merge_retrievals

#: Share of its own words that a question which only may be a follow-up must share with what is found behind.
OWN_WORDS = 0.3


def search_follow_up(
    question: str,
    back_reference: BackReference,
    subject: Callable[[], Subject | None],
    search: Callable[[str], Retrieval],
) -> tuple[Retrieval, Subject | None]:
    """Return the results, and the subject that the question follows up on; None if it stands alone.

    Args:
        back_reference: whether the question's own words point back.
        subject: is called only if the question can't stand alone, because it may ask a model.
    """
    alone = search(question)
    if back_reference == "no" or (back_reference == "short" and alone.sure):
        return alone, None
    earlier = subject()
    if earlier is None:
        return alone, None
    behind = search(earlier.before(question))
    if back_reference == "short" and not _speaks_of(alone, behind):
        return alone, None
    return merge_retrievals(alone, behind), earlier


def _speaks_of(alone: Retrieval, behind: Retrieval) -> bool:
    """Whether the best of a search holds enough of the words of the question alone."""
    return bool(behind.candidates) and held_share(behind.candidates[0], alone.question) >= OWN_WORDS
