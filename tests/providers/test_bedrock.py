"""The part of Bedrock that embedder and reranker share: model names, clients, errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.bedrock.runtime import Runtime, profile
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.loopback import Fault

pytest.importorskip("boto3")

BODY = {"texts": ["Grüße \U0001f30d"], "input_type": "search_query", "embedding_types": ["float"]}


@pytest.fixture
def server() -> Iterator[BedrockServer]:
    with BedrockServer() as running, aws_environment(running):
        yield running


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("cohere.embed-v4:0", ("", "cohere.embed-v4:0")),
        ("us.cohere.embed-v4:0", ("us.", "cohere.embed-v4:0")),
        ("us-gov.cohere.embed-v4:0", ("us-gov.", "cohere.embed-v4:0")),
        ("amazon.rerank-v1:0", ("", "amazon.rerank-v1:0")),
        ("a.b.cohere.embed-v4:0", ("", "a.b.cohere.embed-v4:0")),
        ("", ("", "")),
    ],
)
def test_a_profile_is_a_geography_and_a_model(name: str, parts: tuple[str, str]) -> None:
    assert profile(name) == parts


def test_a_reply_comes_back_parsed(server: BedrockServer) -> None:
    runtime = Runtime.open("reranker", 1, 5)
    said = runtime.invoke("cohere.embed-english-v3", BODY)
    assert said["texts"] == BODY["texts"]
    assert server.history[0].body == BODY


@pytest.mark.parametrize("part", ["embedder", "reranker"])
def test_a_message_names_who_asked(server: BedrockServer, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    runtime = Runtime.open(part, 1, 5)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigurationError, match=f"^The {part} bedrock needs a region"):
        Runtime.open(part, 1, 5)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    runtime = Runtime.open(part, 1, 5)
    with pytest.raises(ProviderError, match=f"^The {part} bedrock finds no AWS credentials"):
        runtime.invoke("cohere.embed-english-v3", BODY)
    assert server.history == []


def test_a_failure_quotes_nothing(server: BedrockServer) -> None:
    runtime = Runtime.open("reranker", 1, 5)
    server.play(Fault(403, said="arn:aws:iam::123456789012:user/someone may not"))
    with pytest.raises(ProviderError) as caught:
        runtime.invoke("cohere.embed-english-v3", BODY)
    assert "1234" not in str(caught.value)
    assert caught.value.__cause__ is None
