"""The address of a server with OpenAI's interface: which version is added, and which query is kept."""

from __future__ import annotations

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.openai.service import OpenAIService
from chapterverse.settings import Settings

HOST = "https://models.example"
CHAT = "/chat/completions"


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v2/", "/v1/chat/completions"),
        ("/proxy", "/proxy/v1/chat/completions"),
        ("/proxy/V1", "/proxy/v1/chat/completions"),
        ("/client/v4/accounts/a/ai/v1", "/client/v4/accounts/a/ai/v1/chat/completions"),
        ("/api/paas/v4", "/api/paas/v4/chat/completions"),
        ("/api/v3/", "/api/v3/chat/completions"),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
        ("/v1beta/openai/", "/v1beta/openai/chat/completions"),
        ("/v1/openai", "/v1/openai/chat/completions"),
        ("/openai/v1", "/openai/v1/chat/completions"),
        ("/openai/v1/?api-version=preview", "/openai/v1/chat/completions?api-version=preview"),
        (
            "/openai/deployments/x?api-version=2024-10-21",
            "/openai/deployments/x/chat/completions?api-version=2024-10-21",
        ),
        ("?api-version=1", "/v1/chat/completions?api-version=1"),
        ("/chat/completions", "/chat/completions"),
        ("/inference/chat/completions", "/inference/chat/completions"),
    ],
)
def test_an_address_becomes_that_of_the_route(address: str, asked: str) -> None:
    service = OpenAIService.from_settings(Settings(openai_url=f" {HOST}{address} "))
    assert f"{service.url.rstrip('/')}{service.path(CHAT)}" == f"{HOST}{asked}"


@pytest.mark.parametrize("query", ["key=s3cret", "api-version=1&key=s3cret", "key"])
def test_another_query_is_refused_and_not_quoted(query: str) -> None:
    with pytest.raises(ConfigurationError, match="leave out all but api-version") as caught:
        OpenAIService.from_settings(Settings(openai_url=f"{HOST}?{query}"))
    assert "s3cret" not in str(caught.value)


def test_a_key_is_sent_by_the_name_that_azure_wants_too() -> None:
    service = OpenAIService.from_settings(Settings(openai_url=f"{HOST}?api-version=1", openai_api_key="k"))
    assert service.headers == {"Authorization": "Bearer k", "api-key": "k"}
    assert "api-key" not in OpenAIService.from_settings(Settings(openai_url=HOST, openai_api_key="k")).headers
