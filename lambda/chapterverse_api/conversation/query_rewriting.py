"""Rewrites a follow-up so that it names its subject: in full by a model, or as lines behind earlier questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse.extensions import load_part
from chapterverse.text.tokens import cut_to_words
from chapterverse_api.conversation.detection import STANDALONE_WORDS, count_content_words, detect_follow_up
from chapterverse_api.conversation.history import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer

#: Earlier questions that are put before a follow-up, and characters of each.
_MAX_QUESTIONS, _MAX_QUESTION_CHARS = 3, 300


@dataclass(frozen=True, slots=True)
class ContextualQuery:
    """A follow-up with what it refers to.

    Attributes:
        text: the text to search for: the question as a model wrote it in full, or earlier questions and this one, a
            line each.
        title: the text that a reader is shown: the question in full, or the last of the earlier ones.
    """

    text: str
    title: str


def rewrite_follow_up(
    question: str,
    conversation: Conversation,
    writer: Writer | None,
    deadline: Deadline,
    languages: Sequence[str] = ("en",),
) -> ContextualQuery | None:
    """Return what to search for; None without earlier questions, or with the same only.

    Args:
        writer: gets a second and a half to rewrite the question; None without a model.
        deadline: the turn's.
        languages: the languages of the docs, BCP 47.
    """
    if not conversation.questions:
        return None
    if writer and (rewritten := load_part("rewrite")(question, conversation.messages, writer, deadline, languages)):
        return None if rewritten == question else ContextualQuery(rewritten, rewritten)
    earlier: list[str] = []
    for text in reversed(conversation.questions):
        # Of a chain ("and on Windows?", "and on a Mac?") the last link and the question that it hangs on say it all.
        if earlier and detect_follow_up(text, languages) == "yes":
            continue
        if text != question and text not in earlier:
            earlier.insert(0, cut_to_words(text, _MAX_QUESTION_CHARS))
        if len(earlier) == _MAX_QUESTIONS or count_content_words("\n".join(earlier), languages) >= STANDALONE_WORDS:
            break
    return ContextualQuery("\n".join([*earlier, question]), earlier[-1]) if earlier else None
