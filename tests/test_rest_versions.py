"""An address that already holds the version which each request adds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chapterverse.embedding.cohere import CohereEmbedder
from chapterverse.embedding.openai import OpenAIEmbedder
from chapterverse.errors import ConfigurationError
from chapterverse.rest.versions import unversioned
from chapterverse.settings import Settings
from chapterverse_api.generation.cohere import CohereGenerator
from chapterverse_api.generation.openai import OpenAIGenerator
from chapterverse_api.reranking.cohere import CohereReranker

HOST = "http://localhost:11434"


@pytest.mark.parametrize(
    ("opened", "name"),
    [
        (lambda settings: OpenAIEmbedder.from_settings(settings, "m"), "CHAPTERVERSE_OPENAI_URL"),
        (lambda settings: OpenAIGenerator.from_settings(settings, "m"), "CHAPTERVERSE_OPENAI_URL"),
        (CohereEmbedder.from_settings, "CHAPTERVERSE_COHERE_URL"),
        (CohereGenerator.from_settings, "CHAPTERVERSE_COHERE_URL"),
        (CohereReranker.from_settings, "CHAPTERVERSE_COHERE_URL"),
    ],
)
def test_an_address_with_a_version_is_refused_when_opened(opened: Callable[[Settings], object], name: str) -> None:
    for url, version in ((f"{HOST}/v1", "/v1"), (f"{HOST}/v2/", "/v2"), (f"{HOST}/proxy/V1//", "/V1")):
        with pytest.raises(ConfigurationError) as caught:
            opened(Settings(openai_url=url, cohere_url=url, cohere_api_key="k", openai_api_key="k"))
        sentence = f"{name} ends in {version}, which each request adds by itself: remove it there."
        assert str(caught.value) == sentence


@pytest.mark.parametrize("url", [HOST, f"{HOST}/", f"{HOST}/api", f"{HOST}/v1/openai", "https://v1.example.com"])
def test_any_other_address_is_taken_as_it_is(url: str) -> None:
    assert unversioned(url, "NAME") == url
