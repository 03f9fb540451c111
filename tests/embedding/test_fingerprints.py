"""An index may be read by another embedder only if both make the same vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import combinations

import pytest

from chapterverse.embedding import Embedder
from chapterverse.ext.bedrock.embedder import BEDROCK_EMBEDDERS as ON_BEDROCK
from chapterverse.ext.bedrock.embedder import BedrockEmbedder
from chapterverse.ext.cohere.embedder import COHERE_EMBEDDERS as AT_COHERE
from chapterverse.ext.cohere.embedder import CohereEmbedder
from chapterverse.ext.openai.embedder import OpenAIEmbedder
from chapterverse.settings import Settings
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.cohere_server import KEY, CohereServer
from fakes.openai_server import OpenAIServer

pytest.importorskip("boto3")


@pytest.fixture(scope="module")
def embedders() -> Iterator[dict[str, Embedder]]:
    """One embedder for each way in which a setting can be spelled, by the card's name."""
    with ExitStack() as stack:
        stack.enter_context(aws_environment(stack.enter_context(BedrockServer())))
        settings = Settings(
            cohere_url=stack.enter_context(CohereServer()).url,
            cohere_api_key=KEY,
            openai_url=stack.enter_context(OpenAIServer(key="")).url,
        )
        at_openai = ["text-embedding-3-small", "text-embedding-3-large", "nomic-embed-text", "all-minilm"]
        made: list[Embedder] = [
            *(CohereEmbedder.from_settings(settings, s) for s in spelled(AT_COHERE, lambda m: AT_COHERE[m].sizes)),
            *(BedrockEmbedder.from_settings(Settings(), s) for s in spelled(ON_BEDROCK, lambda m: ON_BEDROCK[m].sizes)),
            *(OpenAIEmbedder.from_settings(settings, s) for s in [*at_openai, "text-embedding-3-large/1536"]),
        ]
        yield {e.card.name: e for e in made}


def spelled(models: Iterable[str], sizes: Callable[[str], tuple[int, ...]]) -> list[str]:
    named = [name for m in models for name in (m, *(f"{m}/{size}" for size in sizes(m)))]
    return [name + numbers for name in named for numbers in ("", "@int8")]


def test_fingerprints_differ_wherever_vectors_may(embedders: dict[str, Embedder]) -> None:
    alike = {
        frozenset({a, b})
        for (a, one), (b, other) in combinations(embedders.items(), 2)
        if one.card.fingerprint == other.card.fingerprint
    }
    # Cohere documents one space for the two models of its fifth generation, and for no others.
    twins = {frozenset({a, a.replace("v5.0-pro", "v5.0-fast")}) for a in embedders if "v5.0-pro" in a}
    assert alike == twins
    assert len(twins) == 12


def test_a_card_tells_the_truth(embedders: dict[str, Embedder]) -> None:
    for name, embedder in embedders.items():
        (built,), asked = embedder.embed_documents(["one text"]), embedder.embed_query("one text")
        assert len(built) == len(asked) == embedder.card.size, name
        assert all(n.is_integer() for n in built + asked) == ("@int8" in name)


def test_a_price_is_known_or_nothing(embedders: dict[str, Embedder]) -> None:
    prices = {name: embedder.price for name, embedder in embedders.items()}
    assert prices["cohere:embed-english-v3.0"] == prices["bedrock:cohere.embed-english-v3"] == 0.10
    assert prices["cohere:embed-v5.0-fast/256@int8"] == 0.08
    assert (prices["openai:text-embedding-3-small"], prices["openai:all-minilm"]) == (0.02, 0.0)
