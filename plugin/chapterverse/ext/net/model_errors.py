"""Errors of model services as ours. Their types differ by what a caller can do.

A service's own message is never shown, because it may quote the request or a part of the key, and ours are printed and
logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chapterverse.errors import AnswerWithheld, KeyRefused, ModelLoading, ProviderError, TextRejected
from chapterverse.ext.net import Event, is_unbilled
from chapterverse.ext.net.model_replies import Cause, Fault, read_ending
from chapterverse.ext.net.retry import BusyError
from chapterverse.ext.net.stream import DOCUMENT
from chapterverse.text.json_text import parse_json

#: The data of the event that ends a stream, and the names of events that keep a connection open.
END_MARK = "[DONE]"
_PINGS = {"ping", "keepalive", "keep-alive", "heartbeat"}

#: A timeout, a conflict and a rate limit may pass, as may every status from 500 on.
_RETRIED_STATUSES = {408, 409, 429}
#: The service doesn't know the key, or the key may not do this.
_KEY_REFUSED_STATUSES = {401, 403}
#: The message of a rate limit names the quota too, as if it were used up for good.
_RATE_LIMITED = 429
#: Statuses that say by themselves what is wrong, whatever the words, and those that do so if the words don't. Cohere's
#: filter has a status of its own, and so has Portkey's.
_PLAIN_STATUSES = {401, 404}
_STATUS_CAUSES: dict[int, Cause] = {402: "spent", 413: "too_long", 446: "withheld", 498: "withheld"}

_CAUSES: dict[Cause, str] = {
    "withheld": "withheld the answer by its content filter: ask in other words",
    "too_long": "finds the prompt longer than its model's context: give the model at least 8,000 tokens",
    "no_system": "refuses instructions as a system message",
    "no_stream": "refuses to stream this model's answers",
    "spent": "has a budget, a quota or a balance that is used up: check the account's billing",
    "loading": "is still loading the model: ask again in a minute",
}
_STATUSES = {
    **dict.fromkeys((301, 302, 307, 308), "is at another address: check {address}"),
    400: "refused the request as malformed",
    401: "refused the key: check {key}",
    403: "refused the key: check {key}",
    404: "does not know this model: check {model} and {address}",
    422: "refused the request as malformed",
    429: "has a rate limit that was reached: try again later",
}


class PromptTooLong(TextRejected, AnswerWithheld):
    """The text, or the prompt of this question, is longer than the model's context."""


_TYPES: dict[Cause, type[ProviderError]] = {
    "withheld": AnswerWithheld,
    "too_long": PromptTooLong,
    "spent": ProviderError,
}


@dataclass(frozen=True, slots=True)
class ServiceErrors:
    """The errors of one endpoint.

    Attributes:
        service: the name of the endpoint at the start of a sentence.
        key, address: the variables with its key and with its address.
        model: the setting to check if it doesn't know the model.
        rejected_statuses: statuses of a request that it will never accept as it is.
    """

    service: str
    key: str
    address: str
    model: str = "its name"
    rejected_statuses: frozenset[int] = frozenset({400})

    def error(self, status: int, body: Any, pause: float | None = None) -> ProviderError:
        """Return the error of a reply with this status.

        Args:
            body: the reply, parsed.
            pause: seconds after which the service asks to be tried again; None if it doesn't state any.
        """
        if 200 <= status < 300:
            return no_reply_error(self.service)
        cause = self.cause(status, body)
        reason = _CAUSES[cause] if cause else _STATUSES.get(status, f"failed with status {status}")
        reason = reason.format(key=self.key, model=self.model, address=self.address)
        error = _error(cause, f"{self.service} {reason}.", status, pause, self.rejected_statuses)
        error.unbilled = is_unbilled(status)
        return error

    def cause(self, status: int, body: Any) -> Cause | None:
        """Return why a request was rejected; None if only its status says so."""
        if status in _PLAIN_STATUSES:
            return None
        fault = Fault.read(body)
        cause = Fault(fault.codes, "").cause if status == _RATE_LIMITED else fault.cause
        return cause or _STATUS_CAUSES.get(status)

    def error_in_reply(self, body: Any) -> ProviderError:
        """Return the error that a reply with status 200, or a stream, holds. What came before it may be billed."""
        cause = self.cause(200, body)
        if cause is None:
            return self.broken_error()
        error = self.error(400, body)
        error.unbilled = False
        return error

    def parse_event(self, event: Event) -> Any:
        """Return the document in an event of a stream; None for an end mark, a ping, and whatever else holds none.

        Raises:
            ProviderError: it is damaged, or the body is no reply.
        """
        data = event.data.strip()
        if event.name in _PINGS or data in ("", END_MARK):
            return None
        try:
            return parse_json(data)
        except ValueError:
            if event.name == DOCUMENT:
                raise no_reply_error(self.service) from None
            if data.startswith("{"):
                raise self.broken_error() from None
            return None

    def check_ending(self, reason: object, *, is_ended: bool = False) -> bool:
        """Return whether a limit of length ended a text that ended for this reason.

        Args:
            is_ended: whether the text has an end without a reason, too: the service's mark, or that of the whole reply.

        Raises:
            AnswerWithheld: a filter ended it.
            ProviderError: it broke off.
        """
        ending = read_ending(reason)
        if ending == "withheld":
            raise self.withheld_error()
        if ending == "broken" or (ending is None and not is_ended):
            raise self.broken_error()
        return ending == "cut"

    def withheld_error(self) -> AnswerWithheld:
        """Return the error of an answer that a filter ended."""
        return AnswerWithheld(f"{self.service} {_CAUSES['withheld']}.")

    def broken_error(self) -> ProviderError:
        """Return the error of an answer that broke off."""
        return ProviderError(f"{self.service} broke off in the middle of its answer: try again later.", retryable=True)


def _error(
    cause: Cause | None, message: str, status: int, pause: float | None, rejected_statuses: frozenset[int]
) -> ProviderError:
    if cause in _TYPES:
        return _TYPES[cause](message)
    if cause == "loading":
        return ModelLoading(message, retryable=True)
    if status in _RETRIED_STATUSES or status >= 500:
        return BusyError(message, pause=pause)
    if status in _KEY_REFUSED_STATUSES:
        return KeyRefused(message)
    return TextRejected(message) if status in rejected_statuses else ProviderError(message)


def no_reply_error(service: str) -> ProviderError:
    """Return the error of an answer that the service doesn't give."""
    return ProviderError(f"{service} answered with something that is no reply.", retryable=True)
