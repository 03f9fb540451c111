"""The conversation before a question: its messages, as many as a prompt holds, and the reader's questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from chapterverse.text.shortening import cut_to_words
from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, Message
from chapterverse_api.conversation.recall import MAX_RECALLED_TURNS, find_relevant_turns
from chapterverse_api.conversation.transcript import Signer, truncate
from chapterverse_api.draft.prompts import MAX_RECALLED_TOKENS, estimate_tokens, recent_messages
from chapterverse_api.draft.requests import ChatMessage

if TYPE_CHECKING:
    from chapterverse_api.records.protocols import StoredThread

#: Precedes an answer of the request that has no valid signature.
REPORTED = "(What the reader says was answered:)\n"

#: Characters of each question and answer that is recalled.
_MAX_TEXT_CHARS = 400

_REFUSED_ANSWERS = frozenset(
    phrases.refusal(tag, limited=limited) for tag in phrases.LANGUAGES for limited in (False, True)
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
        summary: a summary of the earlier turns; empty if the thread is not stored.
        recalled: earlier turns of a kept thread that are about the same subject, as text.
    """

    messages: tuple[ChatMessage, ...] = ()
    questions: tuple[str, ...] = ()
    previous: str = ""
    summary: str = ""
    recalled: str = ""

    @classmethod
    def from_query(
        cls, query: ChatQuery, signer: Signer, thread: StoredThread | None = None, turn_top_k: int = MAX_RECALLED_TURNS
    ) -> Self:
        """Return the conversation before a question.

        The first of these is the conversation:
        1. the messages of the request, if signatures of this service cover the last ones, because the reader sees them;
        2. the stored turns of the thread, because they are known to be true;
        3. the messages of the request, as the reader's words.

        Args:
            turn_top_k: the most earlier turns to recall.
        """
        history, stored = query.conversation_history, thread.turns if thread else ()
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
        recalled = _recall(thread, query, messages, turn_top_k)
        return cls(messages, tuple(questions), transcript.tag, thread.summary if thread else "", recalled)


def _recall(thread: StoredThread | None, query: ChatQuery, messages: Sequence[ChatMessage], top_k: int) -> str:
    """Return the turns of a thread that are about a question's subject, unless the prompt has them anyway.

    The best ones fill the turns' share of the tokens. They are returned in the order of the conversation.
    """
    if thread is None or not query.query:
        return ""
    present = {message.content for message in messages}
    turns = [turn for turn in thread.turns if turn.question not in present and turn.answer not in present]
    recalled, remaining_tokens = dict[int, str](), float(MAX_RECALLED_TOKENS)
    for turn in find_relevant_turns(turns, query.query, top_k):
        question, answer = (cut_to_words(text, _MAX_TEXT_CHARS) for text in (turn.question, turn.answer))
        text = f"Reader: {question}\nAnswer: {answer}"
        remaining_tokens -= estimate_tokens(f"{text}\n\n")
        # A prompt takes as much of the best as it holds.
        if recalled and remaining_tokens < 0:
            break
        recalled[turn.number] = text
    return "\n\n".join(recalled[number] for number in sorted(recalled))


def _chat_message(message: Message, *, is_signed: bool) -> ChatMessage:
    if message.role == "user":
        return ChatMessage("user", message.content)
    if not is_signed:
        return ChatMessage("user", f"{REPORTED}{message.content}")
    # The signature doesn't cover the text behind the cut.
    return ChatMessage("assistant", truncate(message.content))
