"""The conversation before a question: its messages, and the signatures that prove which answers are ours.

Only the browser keeps the conversation, so each answer is signed by a chained MAC:

    tag = HMAC-SHA256(key, version, key id, expiry, turn id, previous tag, question, answer)

Each part follows its length in bytes (32 bits; the expiry is a number of 64), so that no byte can move from one part to
the next and leave the whole as it was.

A signature proves that we gave this answer to this question, and which of our answers came before it. So the signed
turns at the end of a transcript, each naming the tag of the one before, are a stretch of one conversation as it took
place: none was changed, moved, dropped, doubled or brought in from another conversation. A signed answer that isn't the
one that the next answer names ends the stretch. Signatures don't prove what came before the stretch or after it: a
browser that sends fewer messages sends the conversation as it was earlier. Messages without a signature are allowed
anywhere; they count as the reader's own words.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, Message, Signature
from chapterverse_api.draft.requests import ChatMessage, recent_messages
from chapterverse_api.request_limits import MAX_MESSAGE_CHARS

#: Precedes an answer of the request that has no valid signature.
REPORTED = "(What the reader says was answered:)\n"

_REFUSED_ANSWERS = frozenset(
    phrases.refusal(tag, limited=limited) for tag in phrases.PHRASE_LANGUAGES for limited in (False, True)
)
#: Seconds for which a signature counts.
SIGNATURE_SECONDS = 2 * 60 * 60

_VERSION = b"chapterverse/transcript/1"
#: Characters of a key, and how many different ones it needs at least: 32 random hexadecimal digits hold about 14.
_MIN_KEY_CHARS, _MIN_DISTINCT_CHARS = 32, 8


@dataclass(frozen=True, slots=True)
class Transcript:
    """The part of a history that signatures prove.

    Attributes:
        positions: the positions of the answers that this service gave, as far as `truncate` keeps them.
        tag: the tag of the last of these; the next signature names it. Empty without one.
    """

    positions: frozenset[int] = frozenset()
    tag: str = ""


class Signer:
    """Signs with the first of its keys and verifies with all of them.

    Args:
        keys: secrets, newest first. Without any, a random key is made, which ends with this process: after a restart,
            or on another instance, our earlier answers count as the reader's words.

    Raises:
        ConfigurationError: a key is too short to be secret.
    """

    def __init__(self, keys: Sequence[str] = ()) -> None:
        for key in keys:
            if len(key) < _MIN_KEY_CHARS or len(set(key)) < _MIN_DISTINCT_CHARS:
                raise ConfigurationError(
                    f"A key in CHAPTERVERSE_SIGNING_KEY is shorter than {_MIN_KEY_CHARS} characters, or the same few"
                    " over and over: make one with `openssl rand -hex 32`."
                )
        raw = [key.encode(errors="surrogateescape") for key in keys] or [secrets.token_bytes(32)]
        # Ids are public. A MAC by the key itself reveals nothing about the key.
        self._keys = {hmac.digest(key, b"chapterverse/key-id", "sha256").hex()[:16]: key for key in raw}
        self._newest = next(iter(self._keys))

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the signer that `settings.signing_key` describes: its keys, comma-separated, newest first."""
        return cls([key.strip() for key in settings.signing_key.split(",") if key.strip()])

    def sign(self, turn_id: str, previous: str, question: str, answer: str, *, now: float | None = None) -> Signature:
        """Return the signature of a turn.

        Args:
            turn_id: 32 hexadecimal digits.
            previous: `Transcript.tag` of the history that came with the question.
            question: as `signed_question` returns it.
            now: seconds since 1970; None means now.
        """
        expiry = int(time.time() if now is None else now) + SIGNATURE_SECONDS
        tag = self._tag(self._newest, expiry, turn_id, previous, question, answer)
        return Signature(key_id=self._newest, expiry=expiry, turn_id=turn_id, previous=previous, tag=tag)

    def seal(self, purpose: bytes, data: bytes) -> tuple[str, str]:
        """Return the id of the newest key, and its tag over data that a client keeps for us."""
        return self._newest, self._mac(self._newest, purpose, self._newest.encode(), data)

    def is_sealed(self, purpose: bytes, data: bytes, key_id: str, tag: str) -> bool:
        """Whether `seal` made this tag, for this purpose and data, in a process with one of these keys."""
        has_key = key_id in self._keys and tag.isascii()
        return has_key and hmac.compare_digest(self._mac(key_id, purpose, key_id.encode(), data), tag)

    def _mac(self, key_id: str, *parts: bytes) -> str:
        """Return the MAC of parts, each behind its length; see the module's docstring."""
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(self._keys[key_id], message, "sha256").hex()

    def read(self, history: Sequence[Message], *, now: float | None = None) -> Transcript:
        """Return which answers of a history this service gave; see the module's docstring."""
        now = time.time() if now is None else now
        positions: list[int] = []
        last, previous = "", ""
        for at in range(len(history) - 1, 0, -1):
            signature = self._find_valid(history[at - 1], history[at], now)
            if signature is None:
                continue
            if positions and not hmac.compare_digest(signature.tag, previous):
                break
            positions.append(at)
            last, previous = last or signature.tag, signature.previous
        return Transcript(frozenset(positions), last)

    def _find_valid(self, question: Message, answer: Message, now: float) -> Signature | None:
        """Return the signature of a turn if this service made it and it has not expired."""
        signature = answer.signature
        if signature is None or (question.role, answer.role) != ("user", "assistant"):
            return None
        if signature.key_id not in self._keys or signature.expiry <= now:
            return None
        key_id, expiry, turn_id = signature.key_id, signature.expiry, signature.turn_id
        tag = self._tag(key_id, expiry, turn_id, signature.previous, question.content, answer.content)
        return signature if hmac.compare_digest(signature.tag, tag) else None

    def _tag(self, key_id: str, expiry: int, turn_id: str, previous: str, question: str, answer: str) -> str:
        return self._mac(
            key_id,
            _VERSION,
            key_id.encode(),
            expiry.to_bytes(8, "big"),
            turn_id.encode(),
            previous.encode(),
            truncate(question).encode(),
            truncate(answer).encode(),
        )


def signed_question(query: ChatQuery) -> str:
    """Return the reader's message as the history holds it: the question, or the selection without one."""
    return truncate(query.query if query.query is not None else query.selected_text or "")


def truncate(text: str) -> str:
    """Return as much of a text as a history holds, as JavaScript's `text.slice(0, 4000).toWellFormed()` does."""
    if len(text) <= MAX_MESSAGE_CHARS and text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass")[: 2 * MAX_MESSAGE_CHARS].decode("utf-16-le", "replace")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages before a question.

    Attributes:
        messages: oldest first, as many of the latest as a prompt holds; "assistant" marks only answers that this
            service signed; everything else counts as the reader's words.
        questions: the reader's own that were answered, or all if none was, oldest first. A follow-up may refer to them.
            The search uses no answers: a browser could invent them, and questions alone find more.
        previous: the tag that the next signature names, see the module.
        summary: a summary of the earlier turns; empty if the thread is not kept.
        recalled: earlier turns of a kept thread that are about the same subject, as text.
    """

    messages: tuple[ChatMessage, ...] = ()
    questions: tuple[str, ...] = ()
    previous: str = ""
    summary: str = ""
    recalled: str = ""

    @classmethod
    def from_query(cls, query: ChatQuery, signer: Signer, stored: Sequence[tuple[str, str]] = ()) -> Self:
        """Return the conversation before a question.

        The first of these is the conversation:
        1. the messages of the request, if signatures of this service cover the last ones, because the reader sees them;
        2. the stored turns of the thread, because they are known to be true;
        3. the messages of the request, as the reader's words.

        Args:
            stored: the questions that are kept of the thread with their answers, oldest first.
        """
        history = query.conversation_history
        transcript = signer.read(history)
        if stored and not transcript.positions:
            turns = [*stored]
            messages = recent_messages(
                message
                for question, answer in turns
                for message in (ChatMessage("user", question), ChatMessage("assistant", answer))
            )
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
