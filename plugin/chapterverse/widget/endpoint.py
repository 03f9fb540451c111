"""The address of the API that the widget asks."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from chapterverse.errors import ConfigurationError

#: The API is at the site's own origin.
_SAME_ORIGIN = "/"

_SAFE = "/~:@!$&'()*+,;=%-._"


def clean_endpoint(endpoint: str) -> str:
    """Return an API's address without a slash at its end, or `_SAME_ORIGIN`.

    Raises:
        ConfigurationError: it is no http(s) address, or has credentials, a query or /v1.
    """
    text = endpoint.strip().replace("\\", "/")
    if text == _SAME_ORIGIN:
        return _SAME_ORIGIN
    try:
        parts = urlsplit(text)
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "The endpoint must be an address like https://api.example.com, or / for the site's own."
        )
    if "@" in host:
        # The message doesn't repeat it, because the part before the "@" is a secret.
        raise ConfigurationError(
            "The endpoint holds a user name or password, which every reader would see: leave it out."
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(
            "The endpoint must be an address without a query: everything behind its path is left out."
        )
    path = quote(parts.path, safe=_SAFE).rstrip("/")
    if path.endswith("/v1"):
        raise ConfigurationError("The endpoint must be the API's address without /v1, which the widget adds.")
    return f"{parts.scheme}://{host.lower()}{path}"
