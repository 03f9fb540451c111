"""The address of a Qdrant server, and the options of its collections: `qdrant:https://HOST:6333?option=value&…`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.model import slug
from chapterverse.settings import Settings
from chapterverse.text.hosts import is_loopback
from chapterverse.text.tokens import cut_to_bytes

#: The collection of all heads. No site has this name, because no slug has an underscore.
_HEADS = "chapterverse_heads"
_HEADS_SUFFIX = "_heads"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_COPIES = 64
#: The server's limit is 255 bytes, and the embedder's part of the name is added later.
_MAX_NAME_BYTES = 200
_PORT = 6333
_ALLOWED_VALUES = {
    "shards": f"use a number from 1 to {_MAX_COPIES}",
    "replicas": f"use a number from 1 to {_MAX_COPIES}",
    "quantization": "use scalar or none",
    "collection": f"use up to 100 letters, digits, dots, hyphens and underscores, and no ending {_HEADS_SUFFIX}",
}


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """The server, and the options for new collections. Those that exist stay as they are.

    Attributes:
        url: the server's address without options.
        key: the value of the header `api-key`; empty for a server without keys.
        collection: the name of the one collection; empty for one collection for each site, named by the site's slug.
        quantization: "" for exact search over full vectors; "scalar" for a graph over 8-bit vectors, whose results are
            rescored, for indexes of a few hundred thousand chunks and more.
        shards: parts of a collection. If there are several, each part weighs words by its own statistics.
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
        """Read the address after `qdrant:`. If it is empty, it is that of QDRANT_URL.

        Raises:
            ConfigurationError: there is no address, an option is unknown, or a key would travel in the clear.
        """
        address, _, options = place.partition("?")
        address = address or settings.qdrant_url
        if not address:
            raise ConfigurationError(
                "The store qdrant: has no address: use qdrant:https://HOST:6333 or set QDRANT_URL."
            )
        values = _parse_options(options)
        result = cls(
            _with_port(address.rstrip("/")),
            settings.qdrant_api_key,
            collection=values.get("collection", ""),
            quantization=values.get("quantization", "").replace("none", ""),
            shards=int(values.get("shards", 1)),
            replicas=int(values.get("replicas", 1)),
        )
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
        return self.collection + _HEADS_SUFFIX if self.collection else _HEADS

    def base(self, site: str) -> str:
        """Return the name of a site's collection, before the embedder's."""
        return cut_to_bytes(self.collection or slug(site), _MAX_NAME_BYTES)

    def copies(self, shards: int) -> dict[str, int]:
        """Return the options of a collection of so many parts. A write counts when most replicas have it."""
        return {
            "shard_number": shards,
            "replication_factor": self.replicas,
            "write_consistency_factor": self.replicas // 2 + 1,
        }


def _parse_options(query: str) -> dict[str, str]:
    values = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in values.items():
        if name not in _ALLOWED_VALUES:
            raise ConfigurationError(
                f"The store qdrant: has no option {name[:40]!a}: use collection, quantization, shards or replicas."
            )
        if not _is_allowed(name, value):
            raise ConfigurationError(
                f"The option {name} of the store qdrant: can't have that value: {_ALLOWED_VALUES[name]}."
            )
    return values


def _is_allowed(name: str, value: str) -> bool:
    if name == "quantization":
        return value in {"scalar", "none"}
    if name == "collection":
        return _NAME.fullmatch(value) is not None and not value.endswith(_HEADS_SUFFIX)
    return value.isdecimal() and 1 <= int(value) <= _MAX_COPIES


def _with_port(address: str) -> str:
    try:
        parts = urlsplit(address)
        port, is_valid = parts.port, parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if not is_valid or parts.username is not None or parts.fragment:
        raise ConfigurationError("The address of the store qdrant: is no address of a server: use https://HOST:6333.")
    # An address without a port means the same to the official client.
    return address if port else parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORT}").geturl()
