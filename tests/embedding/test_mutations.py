"""A damaged reply never gives a bad vector."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chapterverse.errors import ProviderError
from chapterverse.ext.net.retry import RetryPolicy
from embedding.mutations import mutated
from embedding.providers import PROVIDERS
from fakes.loopback import Fault

TEXTS = ["one text", "another text", "and a third"]


class _Entries(list[Any]):
    """The vectors of OpenAI's entries; changes apply to the entries."""

    def __init__(self, data: list[Any]) -> None:
        super().__init__(entry["embedding"] for entry in data)
        self._data = data

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, value)
        self._data[at]["embedding"] = value

    def __delitem__(self, at: Any) -> None:
        super().__delitem__(at)
        del self._data[at]

    def insert(self, at: Any, value: Any) -> None:
        super().insert(at, value)
        self._data.insert(at, {"object": "embedding", "index": len(self._data), "embedding": value})


def vectors_of(provider: str) -> Callable[[Any], list[Any]]:
    """Return what finds the list of vectors in a provider's reply."""
    if provider == "openai":
        return lambda reply: _Entries(reply["data"])
    return lambda reply: next(iter(reply["embeddings"].values()))


def passed(provider: str, seeds: range) -> list[int]:
    """Return the seeds of the damaged replies that were taken for good ones."""
    vectors, taken = vectors_of(provider), []
    with PROVIDERS[provider](RetryPolicy(tries=1)) as (embedder, server):
        for seed in seeds:
            server.play(Fault(change=partial(mutated, vectors=vectors, seed=seed)))
            with contextlib.suppress(ProviderError):
                embedder.embed_documents(TEXTS)
                taken.append(seed)
        assert len(server.history) == len(seeds)
        assert len(embedder.embed_documents(TEXTS)) == len(TEXTS)
    return taken


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_damaged_reply_passes(provider: str) -> None:
    assert passed(provider, range(100)) == []


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_damaged_reply_of_a_thousand_passes(provider: str) -> None:
    assert passed(provider, range(100, 1100)) == []
