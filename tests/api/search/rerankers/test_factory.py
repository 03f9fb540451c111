"""Rerankers by setting."""

from __future__ import annotations

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings


@pytest.mark.parametrize("name", ["none", "local"])
def test_some_names_are_no_model(name: str) -> None:
    assert open_offer("reranker", Settings(reranker=name)) is None


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("cohere", "cohere:rerank-v3.5"),
        ("cohere:", "cohere:rerank-v3.5"),
        ("cohere:rerank-v5.0-fast", "cohere:rerank-v5.0-fast"),
    ],
)
def test_a_model_is_opened_and_nothing_is_sent(setting: str, name: str) -> None:
    opened = open_offer(
        "reranker", Settings(reranker=setting, cohere_url="https://nowhere.invalid", cohere_api_key="k")
    )
    assert opened is not None
    assert opened.name == name


@pytest.mark.parametrize("setting", ["best", "", "Cohere", "none:x", "local:fast", "openai:gpt"])
def test_an_unknown_name_is_one_sentence(setting: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_offer("reranker", Settings(reranker=setting))
    assert str(caught.value) == (
        f"CHAPTERVERSE_RERANKER is {setting!r}: use none, local, cohere[:MODEL] or bedrock:MODEL."
    )
