"""Addresses of services.

A service's address is its host, port, path, and whether it uses TLS. Each request adds its API version, as `/v1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.ext.net.messages import is_header_safe

_PORTS = {"http": 80, "https": 443}
_VERSION = re.compile(r"/v[12]/*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL in its parts; `prefix` is its path without a slash at the end."""

    scheme: str
    host: str
    port: int | None
    prefix: str

    @property
    def authority(self) -> str:
        """The value of the header `Host`: the host, and the port if it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, _PORTS[self.scheme]) else f"{host}:{self.port}"

    @property
    def place(self) -> tuple[str, int]:
        """Host and port to connect to."""
        return self.host, self.port or _PORTS[self.scheme]

    @classmethod
    def parse(cls, base_url: str) -> Address:
        """Read the address of a service.

        Raises:
            ConfigurationError: it is no http or https address, or it holds a password.
        """
        try:
            parts = urlsplit(base_url)
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:
            parts, host, port = urlsplit(""), "", None
        if parts.scheme not in {"http", "https"} or not host or not is_header_safe(parts.path) or " " in parts.path:
            raise ConfigurationError(f"{_without_secrets(base_url)!r} is no address of a service: use https://HOST.")
        if "@" in parts.netloc:
            raise ConfigurationError(f"The address of {host} holds a user or a password: use https://HOST, and a key.")
        return cls(parts.scheme, host, port, parts.path.rstrip("/"))


def request_target(parts: SplitResult) -> str:
    """Return what a request names of an address: its path with its query."""
    return f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def strip_version(url: str) -> str:
    """Return an address without a version at its end, which other programs ask for and each request would repeat."""
    return _VERSION.sub("", url.strip())


def _without_secrets(base_url: str) -> str:
    # The part before an "@" may hold a password, and the part after a "?" a token.
    return base_url.rpartition("@")[2].partition("?")[0]
