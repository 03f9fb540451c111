"""Headers and JSON bodies of requests, and of replies from servers that may send anything."""

from __future__ import annotations

import http.client
import json
import math
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.net.content_coding import unpack_body
from chapterverse.text.json_text import parse_json

#: The most bytes of a reply of a model or a store. 96 vectors of 3,072 numbers take 8 MB.
MAX_REPLY_BYTES = 16 * 1024 * 1024


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return a body as it is sent."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which JSON may hold and UTF-8 may not, is sent as "?".
    return text.encode(errors="replace")


def read_body(response: http.client.HTTPResponse, host: str) -> bytes:
    """Return the body of a response, unpacked.

    Raises:
        ProviderError: it is too large.
        HTTPException: it broke off, or is damaged.
    """
    raw = response.read(MAX_REPLY_BYTES + 1)
    # `read` with a number of bytes doesn't fail if the body is shorter than announced.
    if len(raw) <= MAX_REPLY_BYTES and response.length:
        raise http.client.IncompleteRead(b"", response.length)
    body = unpack_body(raw, content_coding(response), MAX_REPLY_BYTES)
    if max(len(raw), len(body)) > MAX_REPLY_BYTES:
        raise too_large(host)
    return body


def content_coding(response: http.client.HTTPResponse) -> str:
    """Return how the body of a response is compressed; empty if it is not."""
    return response.getheader("Content-Encoding") or ""


def parse_reply(raw: bytes) -> Any:
    """Return the document in a body; None if it is no JSON."""
    try:
        return parse_json(raw)
    except ValueError:
        return None


def too_large(host: str) -> ProviderError:
    """Return the error of a reply that is too large."""
    return ProviderError(f"{host} sent more than a reply may hold: check its address.")


def bearer(key: str, variable: str) -> dict[str, str]:
    """Return the header with a key.

    Args:
        variable: the variable of the environment that holds the key.

    Raises:
        ConfigurationError: the key is malformed. Checked here, because the error of the HTTP layer would quote the key.
    """
    if not is_header_safe(key):
        raise ConfigurationError(f"{variable} holds characters that no key has: copy it again.")
    return {"Authorization": f"Bearer {key}"}


def is_header_safe(value: str) -> bool:
    """Return whether a header, or the path of an address, may hold this value."""
    return value.isascii() and value.isprintable()


def lower_headers(response: http.client.HTTPResponse) -> dict[str, str]:
    """Return a response's headers by their names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks clients to wait; None if it states none. Header names are in lower case."""
    for name, seconds in _PAUSES.items():
        try:
            pause = seconds(headers[name])
        except (KeyError, ValueError, OverflowError):
            continue
        if not math.isnan(pause):
            return max(0.0, pause)
    return None


def _retry_after(value: str) -> float:
    """Return the seconds of a `Retry-After`, which holds a number or a date."""
    try:
        return float(value)
    except ValueError:
        return parsedate_to_datetime(value).timestamp() - time.time()


_PAUSES: dict[str, Callable[[str], float]] = {
    "retry-after-ms": lambda value: float(value) / 1000,
    "retry-after": _retry_after,
    "x-ratelimit-reset": lambda value: float(value) - time.time(),
}
