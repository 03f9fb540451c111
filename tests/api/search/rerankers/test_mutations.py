"""A damaged reply gives a ranking of the texts or a ProviderError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

import pytest

from api.search.rerankers.damage import mutated
from chapterverse.errors import ProviderError
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.settings import Settings
from chapterverse_api.ext.bedrock.reranker import BedrockReranker
from chapterverse_api.ext.cohere.reranker import CohereReranker
from chapterverse_api.search.rerankers import Reranker
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import Fault, LoopbackServer

TEXTS = ["one text", "another text of the three", "and a third"]


@contextmanager
def cohere() -> Iterator[tuple[Reranker, LoopbackServer]]:
    with CohereServer() as server:
        yield CohereReranker.from_settings(Settings(cohere_url=server.url, cohere_api_key=KEY)), server


@contextmanager
def bedrock() -> Iterator[tuple[Reranker, LoopbackServer]]:
    pytest.importorskip("boto3")
    with BedrockServer() as server, aws_environment(server):
        # A second try would hide the damaged reply behind a good one.
        yield (
            replace(BedrockReranker.from_settings(Settings(), "cohere.rerank-v3-5:0"), retry=RetryPolicy(tries=1)),
            server,
        )


PROVIDERS: dict[str, Callable[[], AbstractContextManager[tuple[Reranker, LoopbackServer]]]] = {
    "cohere": cohere,
    "bedrock": bedrock,
}


def outcomes(provider: str, seeds: range) -> tuple[int, int]:
    """Return how many damaged replies were refused, and how many still were rankings; all else is an error here."""
    refused = taken = 0
    with PROVIDERS[provider]() as (reranker, server):
        for seed in seeds:
            server.play(Fault(change=partial(mutated, seed=seed)))
            try:
                scores = reranker.rerank("which text", TEXTS)
            except ProviderError:
                refused += 1
            else:
                taken += 1
                assert len(scores) == 3, seed
                assert all(type(score) is float and 0 <= score <= 1 for score in scores), seed
        assert len(server.history) == len(seeds)
    return refused, taken


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_damaged_reply_is_a_ranking_or_an_error(provider: str) -> None:
    refused, taken = outcomes(provider, range(100))
    # A turned digit of a score can't be told from a score, so a few pass.
    assert refused > 60
    assert taken > 0


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_thousand_damaged_replies_are_rankings_or_errors(provider: str) -> None:
    refused, taken = outcomes(provider, range(100, 1100))
    assert refused + taken == 1000
    assert refused > 600
