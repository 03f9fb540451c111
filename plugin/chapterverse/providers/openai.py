"""The address and key of a server with OpenAI's interface, and its errors as ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.net import bearer
from chapterverse.net.address import strip_version
from chapterverse.providers.errors import provider_error
from chapterverse.settings import Settings

_REASONS = {
    400: "refused the request as malformed",
    401: "refused the key: check OPENAI_API_KEY",
    402: "asks for payment: check the account's billing",
    403: "refused the key: check OPENAI_API_KEY",
    404: "does not know this model: check {name} and CHAPTERVERSE_OPENAI_URL",
    413: "refused the request as too large",
    422: "refused the request as malformed",
    429: "has a rate limit that was reached: try again later",
}


def access(settings: Settings) -> tuple[str, dict[str, str]]:
    """Return the server's address, without a version, and the headers with the key; none without a key."""
    key = settings.openai_api_key.strip()
    return strip_version(settings.openai_url), bearer(key, "OPENAI_API_KEY") if key else {}


def is_openai(url: str) -> bool:
    return urlsplit(url).hostname == "api.openai.com"


def require_key(url: str, headers: dict[str, str], part: str) -> None:
    """Raise `ConfigurationError` if OpenAI itself is asked without a key.

    Args:
        part: the part that needs it, for the message: "embedder" or "generator".
    """
    if not headers and is_openai(url):
        raise ConfigurationError(
            f"The {part} openai needs a key: set OPENAI_API_KEY in the environment, or CHAPTERVERSE_OPENAI_URL to "
            "a server that needs none."
        )


@dataclass(frozen=True, slots=True)
class OpenAIErrors:
    """The errors of one endpoint.

    Attributes:
        service: the name of the endpoint at the start of a sentence.
        name: the setting to check if it doesn't know the model.
        rejected: statuses of a request that it will never accept as it is.
    """

    service: str
    name: str
    rejected: frozenset[int] = frozenset()

    def error(self, status: int, body: Any, pause: float | None = None) -> ProviderError:
        """Return the error of a reply with any status but 200; `pause` as in `provider_error`."""
        # The service's own message is not shown, because it may quote the request, or a part of the key.
        error = body.get("error") if isinstance(body, dict) else None
        if status == 429 and isinstance(error, dict) and error.get("code") == "insufficient_quota":
            status = 402
        reason = _REASONS.get(status, f"failed with status {status}").format(name=self.name)
        return provider_error(f"{self.service} {reason}.", status, pause, self.rejected)
