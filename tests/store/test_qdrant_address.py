"""Addresses of Qdrant servers and their options."""

from __future__ import annotations

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.publication import collection_name
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings
from chapterverse.store import open_store


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://qdrant.example:6333", "https://qdrant.example:6333"),
        ("https://qdrant.example:443/", "https://qdrant.example:443"),
        # As the official client does.
        ("https://qdrant.example", "https://qdrant.example:6333"),
        ("https://qdrant.example/behind/a/proxy", "https://qdrant.example:6333/behind/a/proxy"),
        ("http://[::1]:6334", "http://[::1]:6334"),
        ("http://[::1]", "http://[::1]:6333"),
    ],
)
def test_addresses(address: str, url: str) -> None:
    assert QdrantAddress.parse(address, Settings()).url == url


def test_an_empty_address_is_the_environments() -> None:
    settings = Settings(qdrant_url="https://qdrant.example:1", qdrant_api_key="k")
    assert QdrantAddress.parse("", settings) == QdrantAddress("https://qdrant.example:1", "k")
    assert QdrantAddress.parse("?shards=2", settings).shards == 2
    with pytest.raises(ConfigurationError, match="has no address"):
        open_store(Settings(store="qdrant:"))


def test_options() -> None:
    made = QdrantAddress.parse("https://h:1?collection=a_b&quantization=scalar&shards=2&replicas=3", Settings())
    assert made == QdrantAddress("https://h:1", "", "a_b", "scalar", 2, 3)
    assert made.heads == "a_b_heads"
    assert QdrantAddress.parse("https://h:1?quantization=none", Settings()).quantization == ""


@pytest.mark.parametrize(
    "options",
    ["shards=0", "shards=many", "shards=65", "shards=", "replicas=-1", "quantization=binary", "collection=",
     "collection=a/b", "collection=..", "collection=x_heads"],
)  # fmt: skip
def test_values_that_an_option_can_not_have(options: str) -> None:
    with pytest.raises(ConfigurationError, match=f"option {options.partition('=')[0]} .* can't have that value"):
        QdrantAddress.parse(f"https://h:1?{options}", Settings())


def test_an_unknown_option_is_named_and_its_value_is_not() -> None:
    with pytest.raises(ConfigurationError, match="has no option 'api_key'") as caught:
        QdrantAddress.parse("https://h:1?api_key=hunter2", Settings())
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["h", "h:6333", "ftp://h", "https://", "https://h:port", "https://h:99999", "https://me:hunter2@h:1"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigurationError, match="is no address of a server") as caught:
        QdrantAddress.parse(address, Settings())
    assert "hunter2" not in str(caught.value)


def test_a_key_never_travels_in_the_clear() -> None:
    keyed = Settings(qdrant_api_key="hunter2")
    for host in ("qdrant.example", "10.0.0.1", "qdrant"):
        with pytest.raises(ConfigurationError, match=f"travel to {host} in the clear") as caught:
            QdrantAddress.parse(f"http://{host}:6333", keyed)
        assert "hunter2" not in str(caught.value)
        assert QdrantAddress.parse(f"http://{host}:6333", Settings()).key == ""
    for address in ("http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://qdrant.example"):
        assert QdrantAddress.parse(address, keyed).key == "hunter2"
        assert "hunter2" not in repr(QdrantAddress.parse(address, keyed))


def test_names_of_collections() -> None:
    place, named = QdrantAddress("https://h:1"), QdrantAddress("https://h:1", collection="mine")
    one, other = EmbedderCard("a", 4, 0, "a"), EmbedderCard("a", 8, 0, "a")
    assert collection_name(place, "My Docs!", EmbedderCard()) == "my-docs"
    assert collection_name(named, "My Docs!", EmbedderCard()) == "mine"
    assert collection_name(place, "docs", one) != collection_name(place, "docs", other)
    assert collection_name(place, "docs", one) == collection_name(place, "docs", EmbedderCard("renamed", 4, 9, "a"))
    assert len(collection_name(place, "日本語𠀀" * 40, one).encode()) <= 255
    # No site can be called as the collection of heads is.
    assert collection_name(place, place.heads, EmbedderCard()) != place.heads
