"""The address and key of a server with OpenAI's interface, and its errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.ext.net import bearer
from chapterverse.ext.net.address import strip_version
from chapterverse.ext.net.model_errors import ServiceErrors
from chapterverse.settings import Settings

#: What follows the address of a service that is no proxy of several.
_VERSION = "/v1"
_ROUTE = re.compile(r"/(?:chat/completions|embeddings)\Z", re.IGNORECASE)
#: The end of an address to which no version is added: another one, "/api/paas/v4" or "/v1beta/openai", a deployment,
#: "/openai/deployments/NAME", or the route itself.
_WHOLE = re.compile(
    rf"/v(?![12]\Z)\d{{1,3}}(?:(?:alpha|beta|preview)\d{{0,3}})?(?:/openai)?\Z|/deployments/[^/]+\Z|{_ROUTE.pattern}",
    re.IGNORECASE,
)
#: The parameter by which Azure wants its version.
_QUERY_VERSION = "api-version"


@dataclass(frozen=True, slots=True)
class OpenAIService:
    """A server with OpenAI's interface.

    Attributes:
        url: its address, without a version that is ours to add, and without a query.
        headers: those with the key; none without a key.
    """

    url: str
    headers: dict[str, str] = field(repr=False)
    _version: str = _VERSION
    _query: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> OpenAIService:
        """Return the server that the settings name; nothing is sent.

        Raises:
            ConfigurationError: the key is malformed, or the address holds a query other than `api-version`.
        """
        address, _, query = settings.openai_url.strip().partition("?")
        names = {name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)}
        if names - {_QUERY_VERSION}:
            raise ConfigurationError(
                "CHAPTERVERSE_OPENAI_URL holds a query that no model service gets: leave out all but api-version."
            )
        address = address.rstrip("/")
        is_whole = _WHOLE.search(address) is not None
        url = _ROUTE.sub("", address) if is_whole else strip_version(address)
        key = settings.openai_api_key.strip()
        headers = bearer(key, "OPENAI_API_KEY") if key else {}
        if key and query:
            # Azure's name for it, where the version is a query.
            headers["api-key"] = key
        return cls(url, headers, "" if is_whole else _VERSION, f"?{query}" if query else "")

    def path(self, route: str) -> str:
        """Return the path of a route, `/chat/completions`, below the address."""
        return f"{self._version}{route}{self._query}"

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own."""
        return urlsplit(self.url).hostname == "api.openai.com"

    def require_key(self, part: str) -> None:
        """Raise `ConfigurationError` if OpenAI itself is asked without a key.

        Args:
            part: the part that needs it, for the message: "embedder" or "generator".
        """
        if not self.headers and self.is_openai:
            raise ConfigurationError(
                f"The {part} openai needs a key: set OPENAI_API_KEY in the environment, or CHAPTERVERSE_OPENAI_URL to "
                "a server that needs none."
            )


def service_errors(service: str, model: str, rejected_statuses: frozenset[int] = frozenset()) -> ServiceErrors:
    """Return the errors of one endpoint; arguments as the attributes of `ServiceErrors`."""
    return ServiceErrors(service, "OPENAI_API_KEY", "CHAPTERVERSE_OPENAI_URL", model, rejected_statuses)
