"""Where a Qdrant server is and how collections are made there: `qdrant:https://HOST:6333?option=value&…`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.model import slug
from chapterverse.net.address import is_loopback
from chapterverse.settings import Settings
from chapterverse.text.shortening import cut_to_bytes

#: The collection of all heads; no slug of a site has an underscore, so that no site can be called so.
HEADS = "chapterverse_heads"
_HEADS_OF = "_heads"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_COPIES = 64
#: The server's limit is 255 bytes, and an embedder's name is still to be added.
_MAX_NAME_BYTES = 200
_PORT = 6333


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """The server and the options of collections that are yet to be made; those that exist stay as they are.

    Attributes:
        url: the server's address without options.
        key: sent as `api-key`; empty for a server that asks for none.
        collection: name of the one collection; empty means one for each site, of the site's slug.
        quantization: "" for exact search over full vectors, "scalar" for a graph over 8-bit ones, rescored: for
            indexes of a few hundred thousand chunks and more.
        shards: parts of a collection. With more than one, each part weighs words by its own statistics.
        replicas: copies of each part.
    """

    url: str
    key: str = field(default="", repr=False)
    collection: str = ""
    quantization: str = ""
    shards: int = 1
    replicas: int = 1

    @classmethod
    def parse(cls, place: str, settings: Settings) -> QdrantAddress:
        """Read the address after `qdrant:`; an empty one means that of QDRANT_URL.

        Raises:
            ConfigurationError: there is no address, an option is unknown, or a key would travel in the clear.
        """
        address, _, options = place.partition("?")
        address = address or settings.qdrant_url
        if not address:
            raise ConfigurationError(
                "The store qdrant: has no address: use qdrant:https://HOST:6333 or set QDRANT_URL."
            )
        result = cls(_with_port(address.rstrip("/")), settings.qdrant_api_key, **_options(options))  # type: ignore[arg-type]
        if result.url.startswith("http:") and result.key and not is_loopback(result.host):
            raise ConfigurationError(
                f"The key would travel to {result.host} in the clear: use https://, or unset QDRANT_API_KEY."
            )
        return result

    @property
    def host(self) -> str:
        """The server's name, for messages."""
        return urlsplit(self.url).hostname or ""

    @property
    def heads(self) -> str:
        """Name of the collection of heads."""
        return self.collection + _HEADS_OF if self.collection else HEADS

    def base(self, site: str) -> str:
        """Return the name of a site's collection, before the embedder's."""
        name = self.collection or slug(site)
        return cut_to_bytes(name, _MAX_NAME_BYTES)


def _options(text: str) -> dict[str, str | int]:
    options = dict(parse_qsl(text, keep_blank_values=True))
    out: dict[str, str | int] = {}
    for name, value in options.items():
        if name in {"shards", "replicas"} and value.isdecimal() and 1 <= int(value) <= _MAX_COPIES:
            out[name] = int(value)
        elif name == "quantization" and value in {"scalar", "none"}:
            out[name] = value.replace("none", "")
        elif name == "collection" and _NAME.fullmatch(value) and not value.endswith(_HEADS_OF):
            out[name] = value
        elif name in {"shards", "replicas", "quantization", "collection"}:
            raise ConfigurationError(f"The option {name} of the store qdrant: can't have that value: {_ALLOWED[name]}.")
        else:
            raise ConfigurationError(
                f"The store qdrant: has no option {name[:40]!a}: use collection, quantization, shards or replicas."
            )
    return out


_ALLOWED = {
    "shards": f"use a number from 1 to {_MAX_COPIES}",
    "replicas": f"use a number from 1 to {_MAX_COPIES}",
    "quantization": "use scalar or none",
    "collection": f"use up to 100 letters, digits, dots, hyphens and underscores, and no ending {_HEADS_OF}",
}


def _with_port(address: str) -> str:
    try:
        parts = urlsplit(address)
        port, sound = parts.port, parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        sound = False
    if not sound or parts.username is not None or parts.fragment:
        raise ConfigurationError("The address of the store qdrant: is no address of a server: use https://HOST:6333.")
    # An address without a port means the same to the official client.
    return address if port else parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORT}").geturl()
