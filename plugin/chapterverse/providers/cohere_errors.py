"""Translates Cohere's errors for the operator, and reads the limits of a trial key from its replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chapterverse.errors import KeyRefused, ProviderError
from chapterverse.net import asked_pause, is_unbilled
from chapterverse.net.retry import BusyError
from chapterverse.providers.errors import TextRejected

_REASONS = {
    400: "refused the request as malformed",
    401: "refused the key: check COHERE_API_KEY",
    402: "asks for payment: check the account's billing",
    403: "refused the key: check COHERE_API_KEY",
    404: "does not know this model: check its name and CHAPTERVERSE_COHERE_URL",
    429: "has a rate limit that was reached: try again later",
}

#: How a service says that it doesn't know a key, or that the key may not do this.
_KEY_REFUSED = {401, 403}

#: What passes: a timeout, a conflict, a rate limit, and everything from 500 on.
_PASSING = {408, 409, 429}

#: Headers by which Cohere tells a trial key's limits: calls in a month, and in a minute.
_LIMITS = ("x-endpoint-monthly-call-limit", "x-trial-endpoint-call-limit")


@dataclass(frozen=True, slots=True)
class CohereErrors:
    """The refusals of one endpoint as errors.

    Attributes:
        trial: what the last good reply said of a trial key's limits; Cohere sends them with no refusal.
    """

    trial: dict[str, str] = field(default_factory=dict)

    def note_limits(self, headers: Mapping[str, str]) -> None:
        """Remember the limits that a good reply names; header names in lower case."""
        self.trial.update({name: headers[name] for name in _LIMITS if headers.get(name, "").isdigit()})

    def error(self, status: int, body: Any, headers: Mapping[str, str]) -> ProviderError:
        """Return the error that a reply of any status but 200 is.

        Cohere's own message is left out: it may quote what was sent, and ours are printed and logged.
        """
        meaning = self._meaning(status, body, headers)
        meaning.unbilled = is_unbilled(status)
        return meaning

    def _meaning(self, status: int, body: Any, headers: Mapping[str, str]) -> ProviderError:
        if 200 <= status < 300:
            return ProviderError("Cohere answered with something that is no reply.", retryable=True)
        said = str(body).lower()
        if status == 429 and (self.trial or "trial key" in said):
            return self._trial_is_over(said, headers)
        reason = _REASONS.get(status, f"failed with status {status}")
        message = f"Cohere {reason}."
        if status in _PASSING or status >= 500:
            return BusyError(message, pause=asked_pause(headers))
        if status in _KEY_REFUSED:
            return KeyRefused(message)
        return TextRejected(message) if status == 400 else ProviderError(message)

    def _trial_is_over(self, said: str, headers: Mapping[str, str]) -> ProviderError:
        month, minute = (f"{self.trial[name]} calls" if name in self.trial else "calls" for name in _LIMITS)
        if re.search(r"/ ?month|per month", said):
            return ProviderError(
                f"Cohere's trial key has used up its {month} of this month: use a production key, or wait for the next."
            )
        return BusyError(
            f"Cohere's trial key has used up its {minute} of this minute, or its {month} of this month: "
            "try again later, or use a production key.",
            pause=asked_pause(headers),
        )
