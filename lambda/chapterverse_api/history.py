"""What a follow-up question means: the reader's earlier words, where the new ones don't stand alone."""

from __future__ import annotations

from collections.abc import Sequence

from chapterverse import lexical
from chapterverse_api.contract import Message

#: A question of fewer words that carry meaning leans on the one before it (measured: hit@5 .886 to .989).
_STANDS_ALONE = 4


def standalone(question: str, history: Sequence[Message], languages: Sequence[str] = ("en",)) -> str:
    """Return the question as it can be searched for: with the reader's previous question in front if it is short.

    Only the reader's own words are taken; what a client says that we answered proves nothing.
    """
    language = languages[0] if languages else "en"
    if sum(1 for _ in lexical.words(question, language)) >= _STANDS_ALONE:
        return question
    previous = next((m.content for m in reversed(history) if m.role == "user" and m.content != question), None)
    return f"{previous}\n{question}" if previous else question
