"""Conversations, with and without our signatures."""

from __future__ import annotations

from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, Message
from chapterverse_api.conversation.transcript import Conversation, Signer
from chapterverse_api.ext.conversations.records import StoredThread
from chapterverse_api.ext.conversations.threads import continue_thread

SIGNER = Signer()
DOCKER = "How do I install Quill with Docker on a server?"
REFUSED = phrases.for_language("en").refused


def said(*texts: str) -> list[Message]:
    """Return a conversation in which the reader began."""
    return [Message(role="user" if i % 2 == 0 else "assistant", content=text) for i, text in enumerate(texts)]


def signed(*texts: str) -> list[Message]:
    """Return a conversation with signed answers."""
    history: list[Message] = []
    for question, answer in zip(said(*texts)[::2], said(*texts)[1::2], strict=True):
        mark = SIGNER.sign("0" * 32, SIGNER.read(history).tag, question.content, answer.content)
        history += [question, answer.model_copy(update={"signature": mark})]
    return history


def talk(*history: Message, thread: StoredThread | None = None) -> Conversation:
    query = ChatQuery(query="And now?", conversation_history=list(history))
    return continue_thread(thread, query, SIGNER) if thread else Conversation.from_query(query, SIGNER)
