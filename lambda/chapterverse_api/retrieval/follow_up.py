"""Searches for a question alone, and for one that can't stand alone, together with the conversation's subject.

A follow-up ("and on Windows?") is found by two searches: for the question alone, and for the question behind the last
one. Their scores are added. Measured on 132 later turns of human conversations (mtrag-human): a page that answers is
among the sources of .75 (.68 without the conversation); behind the beginning of the last answer, or both, fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from chapterverse_api.conversation.back_reference import BackReference, back_reference
from chapterverse_api.conversation.history import Conversation, Subject, subject
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.protocols import Writer
from chapterverse_api.retrieval.answerability import held_share
from chapterverse_api.retrieval.results import Retrieval, merge_retrievals

#: Share of its own words that a question which only may be a follow-up must share with what is found behind.
OWN_WORDS = 0.3


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How a question may depend on the conversation; by default it stands alone.

    Attributes:
        back_reference: whether the question's own words point back.
        subject: returns what they point at. It is called only if the question can't stand alone: it may ask a model.
    """

    back_reference: BackReference = "no"
    subject: Callable[[], Subject | None] = lambda: None

    @classmethod
    def of(
        cls,
        question: str,
        conversation: Conversation,
        writer: Writer | None,
        deadline: Deadline,
        languages: Sequence[str],
    ) -> Self:
        """Return how a question depends on a conversation. The arguments are those of `history.subject`."""
        refers_back = back_reference(question, languages) if conversation.questions else "no"
        return cls(refers_back, lambda: subject(question, conversation, writer, deadline, languages))


NO_FOLLOW_UP = FollowUp()


def search_follow_up(
    question: str, follow_up: FollowUp, search: Callable[[str], Retrieval]
) -> tuple[Retrieval, Subject | None]:
    """Return the results, and the subject that the question follows up on; None if it stands alone."""
    alone = search(question)
    if follow_up.back_reference == "no" or (follow_up.back_reference == "short" and alone.sure):
        return alone, None
    earlier = follow_up.subject()
    if earlier is None:
        return alone, None
    behind = search(earlier.before(question))
    if follow_up.back_reference == "short" and not _speaks_of(alone, behind):
        return alone, None
    return merge_retrievals(alone, behind), earlier


def _speaks_of(alone: Retrieval, behind: Retrieval) -> bool:
    """Whether the best of a search holds enough of the words of the question alone."""
    return bool(behind.candidates) and held_share(behind.candidates[0], alone.question) >= OWN_WORDS
