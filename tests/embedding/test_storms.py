"""A build while the provider fails often gives the same index as an undisturbed one."""

from __future__ import annotations

import random

import pytest

from chapterverse.errors import ProviderError
from chapterverse.ext.net.retry import RetryPolicy
from embedding.providers import PROVIDERS
from fakes.loopback import Fault, failing, rate_limited

KINDS = [
    rate_limited(),
    failing(500),
    failing(502),
    failing(503),
    failing(504),
    Fault(cut=True),
    Fault(close=True),
    Fault(change=lambda reply: b"<html>"),
]

TEXTS = [f"text number {i}" for i in range(250)]


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_storm_changes_no_vector(provider: str) -> None:
    with PROVIDERS[provider](RetryPolicy(sleep=lambda seconds: None)) as (embedder, server):
        calm = embedder.embed_documents(TEXTS)
        for seed in range(25):
            chance = random.Random(seed)
            server.play(*(chance.choice(KINDS) if chance.random() < 0.3 else Fault() for _ in range(20)))
            assert embedder.embed_documents(TEXTS) == calm, f"seed {seed}"
            server.faults.clear()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", KINDS, ids=["429", "500", "502", "503", "504", "cut", "closed", "html"])
def test_one_failure_of_each_kind_is_waited_out(provider: str, fault: Fault) -> None:
    with PROVIDERS[provider](RetryPolicy(sleep=lambda seconds: None)) as (embedder, server):
        server.play(fault)
        assert embedder.embed_documents(TEXTS[:2]) == embedder.embed_documents(TEXTS[:2])
        assert not server.faults


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_build_gives_up_after_six_tries(provider: str) -> None:
    with PROVIDERS[provider](RetryPolicy(sleep=lambda seconds: None)) as (embedder, server):
        server.play(*[rate_limited()] * 20)
        with pytest.raises(ProviderError, match="rate limit") as caught:
            embedder.embed_documents(["one"])
        assert caught.value.retryable
        assert len(server.history) == 6
