"""Reads the reply of a server with OpenAI's chat interface: the text, piece by piece or whole, and how it ended.

Servers stream events, or send one document, and a gateway may label one as the other; so what is read is what came. An
event that holds no text is skipped: a ping, the counts of tokens, the verdicts of a filter. The text is whole only if a
reason or `[DONE]` ended it. Some servers give a reason with each piece: one that more text follows ended nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable
from typing import Any, Protocol

from chapterverse.errors import AnswerWithheld, ProviderError
from chapterverse.net import Event
from chapterverse.net.events import DOCUMENT
from chapterverse.providers.errors import ServiceErrors, no_reply_error
from chapterverse.providers.replies import Fault, find_error, read_ending
from chapterverse.text.json_text import parse_json
from chapterverse_api.generation.requests import Usage

#: Seconds for the token counts that a stream sends after the answer, and for more text where the reason came with the
#: first of it.
_USAGE_SECONDS, _UNSURE_SECONDS = 1.0, 3.0
_END_MARK = "[DONE]"
#: Events by which servers keep a connection open.
_PINGS = {"ping", "keepalive", "keep-alive", "heartbeat"}


class RequestRejected(Exception):
    """The reply is an error with status 200, and holds no text before it.

    Attributes:
        body: the reply, parsed.
    """

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body


class TimedReply(Protocol):
    """A reply that is being read."""

    def events(self) -> Iterable[Event]: ...

    def limit_remaining_time(self, seconds: float | None) -> None: ...


def read_texts(reply: TimedReply, usage: Usage, errors: ServiceErrors) -> Generator[str, None, bool]:
    """Yield the text of a reply as it comes; return whether the limit of length ended it.

    Args:
        usage: is filled in.

    Raises:
        RequestRejected: see there.
        AnswerWithheld: a filter ended the text, or the model refuses to answer.
        ProviderError: the text broke off, or this is no such reply.
    """
    reader, limit = _ReplyReader(usage, errors), _TimeLimit(reply)
    try:
        for event in reply.events():
            if text := reader.read(event):
                yield text
            if reader.end.is_marked:
                break
            limit.set(reader.end.seconds_to_wait)
    except AnswerWithheld:
        raise
    except ProviderError:
        # What comes behind a whole text may break off.
        if not (reader.end.is_sure or limit.is_over):
            raise
        reader.end.is_followed = True
    return errors.check_ending(reader.end.reason)


class _TimeLimit:
    """Limits the time for what comes behind the end of a text."""

    def __init__(self, reply: TimedReply) -> None:
        self._reply = reply
        self._seconds: float | None = None
        self._end = math.inf

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def set(self, seconds: float | None) -> None:
        """Limit the time from now on, unless it is limited so already."""
        if seconds != self._seconds:
            self._seconds, self._end = seconds, math.inf if seconds is None else time.monotonic() + seconds
            self._reply.limit_remaining_time(seconds)


class _End:
    """Decides whether a text has ended, and why.

    Attributes:
        is_marked: whether the end mark came.
        is_followed: whether the reason was the last of the text: something else came behind it, or nothing for long.
    """

    def __init__(self) -> None:
        self.is_marked = self.is_followed = False
        self._reason: str | None = None
        self._with_last_text: str | None = None
        # Whether some text came without a reason, and whether text came behind a reason.
        self._has_bare_text = self._was_wrong = False
        self._void = set[str | None]()

    @property
    def is_known(self) -> bool:
        """Whether a reason to end counts."""
        return self._reason is not None

    @property
    def is_sure(self) -> bool:
        """Whether no more text is expected: this server gives its reason once."""
        return self.is_known and self._has_bare_text and not self._was_wrong

    @property
    def seconds_to_wait(self) -> float | None:
        """Seconds for what may follow; None as long as the text goes on."""
        if not self.is_known:
            return None
        return _USAGE_SECONDS if self.is_sure else _UNSURE_SECONDS

    @property
    def reason(self) -> str | None:
        """Why the text ended; None if it broke off."""
        if self.is_marked:
            return self._reason or self._with_last_text or "stop"
        # A stream that gives each piece a reason may have been cut behind its first piece.
        return self._reason if self.is_sure or self.is_followed else None

    def note(self, reason: object, *, has_text: bool, is_whole: bool) -> None:
        """Take the reason of a piece of a reply.

        Args:
            is_whole: whether the piece is the whole reply.
        """
        stated = None if read_ending(reason) is None else str(reason)
        if is_whole:
            self._reason, self.is_followed = stated or ("stop" if has_text else None), True
        elif has_text:
            # A reason that text follows ended nothing, and neither does the next one that comes with text.
            self._was_wrong = self._was_wrong or self.is_known
            self._void.add(self._with_last_text)
            self._has_bare_text = self._has_bare_text or stated is None
            self._with_last_text = None if stated in self._void else stated
            self._reason, self.is_followed = None if self._was_wrong else stated, False
        else:
            self._reason = stated or self._reason
            self.is_followed = self.is_known


class _ReplyReader:
    """Reads the events of one reply."""

    def __init__(self, usage: Usage, errors: ServiceErrors) -> None:
        self.end = _End()
        self._usage, self._errors = usage, errors
        self._has_text = False

    def read(self, event: Event) -> str:
        """Return the text of an event."""
        data = event.data.strip()
        if data == _END_MARK:
            self.end.is_marked = True
            return ""
        if not data or event.name in _PINGS:
            return ""
        chunk = self._parse(event.name, data)
        _count(chunk, self._usage)
        choice = first_choice(chunk, self._errors)
        text = read_message(choice.get("delta") or choice.get("message"), self._errors)
        self._has_text = self._has_text or bool(text)
        reason = choice.get("finish_reason", choice.get("finishReason"))
        self.end.note(reason, has_text=bool(text), is_whole=event.name == DOCUMENT)
        return text

    def _parse(self, name: str, data: str) -> dict[str, Any]:
        """Return an event's object; an empty one if it holds none.

        Raises:
            RequestRejected: it is an error in place of a text.
            ProviderError: it is an error behind a text, or a damaged piece.
        """
        try:
            chunk = parse_json(data)
        except ValueError:
            if name == DOCUMENT:
                raise no_reply_error(self._errors.service) from None
            if data.startswith("{") and not self.end.is_sure:
                raise self._errors.broken_error() from None
            chunk = None
        error = chunk or {} if name == "error" else find_error(chunk)
        if error is not None:
            self._reject(error)
        return chunk if isinstance(chunk, dict) else {}

    def _reject(self, error: Any) -> None:
        if not self._has_text:
            raise RequestRejected(error)
        if Fault.read(error).cause == "withheld":
            raise self._errors.withheld_error()
        if not self.end.is_sure:
            raise self._errors.broken_error()


def first_choice(reply: Any, errors: ServiceErrors) -> dict[str, Any]:
    """Return the first choice of a reply or of a piece of one; an empty one if it holds none or only others.

    Raises:
        ProviderError: it is no such reply.
    """
    choices = (reply.get("choices") or []) if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise errors.broken_error()
    return next((c for c in choices if c.get("index") in (None, 0)), {})


def read_message(message: Any, errors: ServiceErrors) -> str:
    """Return the text of a message; thoughts have fields and parts of their own and are left out.

    Raises:
        AnswerWithheld: the model refuses to answer.
        ProviderError: it is no message.
    """
    if not message and not isinstance(message, str):
        return ""
    content = message.get("content") if isinstance(message, dict) else 0
    if not isinstance(content, str | list | None):
        raise errors.broken_error()
    if message.get("refusal"):
        raise errors.withheld_error()
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return content or ""


def _count(chunk: dict[str, Any], usage: Usage) -> None:
    """Fill in the token counts of a reply, or of a piece of one."""
    counts = chunk.get("usage")
    if isinstance(counts, dict):
        usage.take(counts.get("prompt_tokens"), counts.get("completion_tokens"), counts.get("total_tokens"))
