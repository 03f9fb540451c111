"""Cohere's address and key, and the limits of a trial key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.net import JsonClient, Reply, Stream, asked_pause, bearer, is_unbilled
from chapterverse.ext.net.address import strip_version
from chapterverse.ext.net.model_errors import ServiceErrors
from chapterverse.ext.net.retry import BusyError
from chapterverse.settings import Settings

#: The errors of all its endpoints.
COHERE_ERRORS = ServiceErrors("Cohere", "COHERE_API_KEY", "CHAPTERVERSE_COHERE_URL")

#: Headers with the limits of a trial key: calls in a month, and in a minute.
_LIMIT_HEADERS = ("x-endpoint-monthly-call-limit", "x-trial-endpoint-call-limit")


def access(settings: Settings, part: str) -> tuple[str, str]:
    """Return Cohere's address and the key.

    Args:
        part: the part that needs it, for the message: "embedder", "reranker" or "generator".

    Raises:
        ConfigurationError: there is no key.
    """
    key = settings.cohere_api_key.strip()
    if not key:
        raise ConfigurationError(f"The {part} cohere needs a key: set COHERE_API_KEY in the environment.")
    return strip_version(settings.cohere_url), key


def connect(settings: Settings, part: str, **options: Any) -> JsonClient:
    """Return a client for Cohere; arguments and errors as of `access`, and options of the client."""
    url, key = access(settings, part)
    return JsonClient(url, bearer(key, "COHERE_API_KEY"), billed=True, **options)


@dataclass(frozen=True, slots=True)
class CohereErrors:
    """The errors of one endpoint.

    Attributes:
        trial: the limits of a trial key in the last good reply, because Cohere's errors don't state them.
    """

    trial: dict[str, str] = field(default_factory=dict)

    def save_limits(self, headers: Mapping[str, str]) -> None:
        """Save the limits that a good reply states. Header names are in lower case."""
        self.trial.update({name: headers[name] for name in _LIMIT_HEADERS if headers.get(name, "").isdigit()})

    def check(self, reply: Reply | Stream) -> None:
        """Raise the `ProviderError` of a reply with any status but 200."""
        if reply.status != 200:
            raise self.error(reply.status, reply.body, reply.headers)
        self.save_limits(reply.headers)

    def error(self, status: int, body: Any, headers: Mapping[str, str]) -> ProviderError:
        """Return the error of a reply with any status but 200."""
        text = str(body).lower()
        if status == 429 and (self.trial or "trial key" in text):
            failure = self._trial_error(text, headers)
            failure.unbilled = is_unbilled(status)
            return failure
        return COHERE_ERRORS.error(status, body, asked_pause(headers))

    def _trial_error(self, text: str, headers: Mapping[str, str]) -> ProviderError:
        month, minute = (f"{self.trial[name]} calls" if name in self.trial else "calls" for name in _LIMIT_HEADERS)
        if re.search(r"/ ?month|per month", text):
            return ProviderError(
                f"Cohere's trial key has used up its {month} of this month: use a production key, or wait for the next."
            )
        return BusyError(
            f"Cohere's trial key has used up its {minute} of this minute, or its {month} of this month: "
            "try again later, or use a production key.",
            pause=asked_pause(headers),
        )
