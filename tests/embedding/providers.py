"""The embedders of paid services, each with its fake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from chapterverse.embedding import Embedder
from chapterverse.ext.bedrock.embedder import BedrockEmbedder
from chapterverse.ext.cohere.embedder import CohereEmbedder
from chapterverse.ext.net.retry import RateLimiter, RetryPolicy
from chapterverse.ext.openai.embedder import OpenAIEmbedder
from chapterverse.settings import Settings
from fakes.bedrock_server import BedrockServer
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import LoopbackServer
from fakes.openai_server import OpenAIServer

Opened = AbstractContextManager[tuple[Embedder, LoopbackServer]]


@contextmanager
def cohere(retry: RetryPolicy, model: str = "embed-v4.0/256") -> Iterator[tuple[Embedder, LoopbackServer]]:
    with CohereServer() as server:
        made = CohereEmbedder.from_settings(Settings(cohere_url=server.url, cohere_api_key=KEY), model)
        yield replace(made, retry=retry, rate_limiter=RateLimiter(10**9, 60)), server


def cohere_int8(retry: RetryPolicy) -> Opened:
    return cohere(retry, "embed-v4.0/256@int8")


@contextmanager
def bedrock(retry: RetryPolicy) -> Iterator[tuple[Embedder, LoopbackServer]]:
    pytest.importorskip("boto3")
    with BedrockServer() as server, aws_environment(server):
        yield replace(BedrockEmbedder.from_settings(Settings(), "cohere.embed-v4:0/256"), retry=retry), server


@contextmanager
def aws_environment(server: BedrockServer) -> Iterator[None]:
    """Variables that point boto3 to a fake, independent of the machine's own."""
    with pytest.MonkeyPatch.context() as env:
        env.delenv("AWS_PROFILE", raising=False)
        for name, value in {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url,
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "s3cret-value",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            env.setenv(name, value)
        yield


@contextmanager
def openai(retry: RetryPolicy) -> Iterator[tuple[Embedder, LoopbackServer]]:
    with OpenAIServer(key="") as server:
        settings = Settings(openai_url=server.url)
        yield OpenAIEmbedder.from_settings(settings, "text-embedding-3-small/64", retry), server


PROVIDERS: dict[str, Callable[[RetryPolicy], Opened]] = {
    "cohere": cohere,
    "cohere-int8": cohere_int8,
    "bedrock": bedrock,
    "openai": openai,
}
