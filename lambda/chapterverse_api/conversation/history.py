"""The conversation before a question: its messages, as many as a prompt holds, and the reader's questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, Message
from chapterverse_api.conversation.transcript import Signer, truncate
from chapterverse_api.draft.requests import ChatMessage, recent_messages

if TYPE_CHECKING:
    from chapterverse_api.records import StoredTurn

#: Precedes an answer of the request that has no valid signature.
REPORTED = "(What the reader says was answered:)\n"

_REFUSED_ANSWERS = frozenset(
    phrases.refusal(tag, limited=limited) for tag in phrases.PHRASE_LANGUAGES for limited in (False, True)
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages before a question.

    Attributes:
        messages: oldest first, as many of the latest as a prompt holds; "assistant" marks only answers that this
            service signed; everything else counts as the reader's words.
        questions: the reader's own that were answered, or all if none was, oldest first. A follow-up may refer to them.
            The search uses no answers: a browser could invent them, and questions alone find more.
        previous: the tag that the next signature names, see `conversation.transcript`.
        summary: a summary of the earlier turns; empty if the thread is not kept.
        recalled: earlier turns of a kept thread that are about the same subject, as text.
    """

    messages: tuple[ChatMessage, ...] = ()
    questions: tuple[str, ...] = ()
    previous: str = ""
    summary: str = ""
    recalled: str = ""

    @classmethod
    def from_query(cls, query: ChatQuery, signer: Signer, stored: Sequence[StoredTurn] = ()) -> Self:
        """Return the conversation before a question.

        The first of these is the conversation:
        1. the messages of the request, if signatures of this service cover the last ones, because the reader sees them;
        2. the stored turns of the thread, because they are known to be true;
        3. the messages of the request, as the reader's words.

        Args:
            stored: the turns that are kept of the thread, oldest first.
        """
        history = query.conversation_history
        transcript = signer.read(history)
        if stored and not transcript.positions:
            messages = recent_messages(message for turn in stored for message in turn.messages)
            turns = [(turn.question, turn.answer) for turn in stored]
        else:
            messages = recent_messages(
                _chat_message(m, is_signed=at in transcript.positions) for at, m in enumerate(history)
            )
            answers = {at: m.content for at, m in enumerate(history, -1) if m.role == "assistant"}
            turns = [(m.content, answers.get(at, "")) for at, m in enumerate(history) if m.role == "user"]
        # A refused question would mislead the search.
        questions = [q for q, answer in turns if answer not in _REFUSED_ANSWERS] or [q for q, _ in turns]
        return cls(messages, tuple(questions), transcript.tag)


def _chat_message(message: Message, *, is_signed: bool) -> ChatMessage:
    if message.role == "user":
        return ChatMessage("user", message.content)
    if not is_signed:
        return ChatMessage("user", f"{REPORTED}{message.content}")
    # The signature doesn't cover the text behind the cut.
    return ChatMessage("assistant", truncate(message.content))
