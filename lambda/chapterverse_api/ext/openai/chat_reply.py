"""Reads the reply of a server with OpenAI's chat interface: the text, piece by piece or whole, and how it ended.

Servers stream events, or send one document, and a gateway may label one as the other; so what is read is what came. An
event that holds no text is skipped: a ping, the counts of tokens, the verdicts of a filter. The text is whole only if a
reason or `[DONE]` ended it. Some servers give a reason with each piece: one that more text follows ended nothing.
"""

from __future__ import annotations

import math
import time
from typing import Any

from chapterverse.errors import AnswerWithheld, ProviderError
from chapterverse.ext.net import Event, Stream
from chapterverse.ext.net.model_errors import END_MARK, ServiceErrors
from chapterverse.ext.net.model_replies import Fault, find_error, read_ending
from chapterverse.ext.net.stream import DOCUMENT
from chapterverse_api.draft.requests import Usage
from chapterverse_api.ext.models.wire import CallReader, ModelText

#: Seconds for what a stream sends behind a reason to end: the counts of tokens, its end mark, or more text.
_END_SECONDS = 2.0


class RequestRejected(Exception):
    """The reply is an error with status 200, and holds no text before it.

    Attributes:
        body: the reply, parsed.
    """

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body


def read_texts(reply: Stream, usage: Usage, errors: ServiceErrors) -> ModelText:
    """Yield the text of a reply as it comes, then its calls of tools.

    Args:
        usage: is filled in.

    Raises:
        RequestRejected: see there.
        AnswerWithheld: a filter ended the text, or the model refuses to answer.
        ProviderError: the text broke off, or this is no such reply.
    """
    reader, limit = _ReplyReader(usage, errors), math.inf
    try:
        for event in reply.events():
            if text := reader.read(event):
                yield text
            if reader.end.is_marked:
                break
            if reader.end.is_stated != (limit < math.inf):
                seconds = _END_SECONDS if reader.end.is_stated else None
                limit = time.monotonic() + (seconds or math.inf)
                reply.limit_remaining_time(seconds)
    except AnswerWithheld:
        raise
    except ProviderError:
        # What comes behind a whole text may break off, and after a while nothing comes any more.
        reader.end.is_last = reader.end.is_last or time.monotonic() >= limit
        if reader.end.reason is None:
            raise
    is_cut = errors.check_ending(reader.end.reason)
    yield from reader.tools.calls
    return is_cut


class _End:
    """Decides whether a text has ended, and why.

    Attributes:
        is_marked: whether the end mark came.
        is_last: whether nothing of the text can follow its reason.
    """

    def __init__(self) -> None:
        self.is_marked = self.is_last = False
        self._reason: str | None = None
        # Whether some of the text came without a reason, and the reasons that text followed: these ended nothing.
        self._has_bare_text, self._void = False, set[str]()

    @property
    def is_stated(self) -> bool:
        """Whether the last piece of the text came with a reason, or one came behind it."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why the text ended; None if it goes on or broke off."""
        if self.is_marked:
            return self._reason or "stop"
        # A stream that gives each piece a reason may have been cut behind any of them.
        return self._reason if self.is_last or (self._has_bare_text and not self._void) else None

    def note(self, reason: object, *, has_text: bool, is_whole: bool) -> None:
        """Take the reason of a piece of a reply.

        Args:
            is_whole: whether the piece is the whole reply.
        """
        stated = None if read_ending(reason) is None else str(reason)
        if has_text and not is_whole:
            self._void |= {self._reason} if self._reason else set()
            self._has_bare_text = self._has_bare_text or stated is None
            self._reason, self.is_last = None if stated in self._void else stated, False
        else:
            self._reason = stated or self._reason or ("stop" if has_text else None)
            self.is_last = self.is_stated


class _ReplyReader:
    """Reads the events of one reply."""

    def __init__(self, usage: Usage, errors: ServiceErrors) -> None:
        self.end, self.tools = _End(), CallReader()
        self._usage, self._errors = usage, errors
        self._has_text = False

    def read(self, event: Event) -> str:
        """Return the text of an event.

        Raises:
            RequestRejected: it is an error in place of a text.
            ProviderError: it is an error behind a text, or damaged.
        """
        self.end.is_marked = event.data.strip() == END_MARK
        chunk = self._errors.parse_event(event)
        error = chunk or {} if event.name == "error" else find_error(chunk)
        if error is not None:
            self._reject(error)
        if not isinstance(chunk, dict):
            return ""
        counts = chunk.get("usage")
        if isinstance(counts, dict):
            self._usage.take(*map(counts.get, ("prompt_tokens", "completion_tokens", "total_tokens")))
        choice = _first_choice(chunk, self._errors)
        message = choice.get("delta") or choice.get("message")
        text = _read_message(message, self._errors)
        self.tools.read(message.get("tool_calls") if isinstance(message, dict) else None)
        self._has_text = self._has_text or bool(text)
        reason = choice.get("finish_reason", choice.get("finishReason"))
        self.end.note(reason, has_text=bool(text), is_whole=event.name == DOCUMENT)
        return text

    def _reject(self, error: Any) -> None:
        if not self._has_text:
            raise RequestRejected(error)
        raise self._errors.withheld_error() if Fault.read(error).cause == "withheld" else self._errors.broken_error()


def _first_choice(reply: Any, errors: ServiceErrors) -> dict[str, Any]:
    """Return the first choice of a reply or of a piece of one; an empty one if it holds none or only others.

    Raises:
        ProviderError: it is no such reply.
    """
    choices = (reply.get("choices") or []) if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise errors.broken_error()
    return next((c for c in choices if c.get("index") in (None, 0)), {})


def _read_message(message: Any, errors: ServiceErrors) -> str:
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
