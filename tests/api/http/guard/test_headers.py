from __future__ import annotations

import pytest

from api.scripted import Client, Scripted
from chapterverse_api.app import create_app
from chapterverse_api.http.guard.headers import is_api


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/chat", "/mcp", "/widget/panel.js", "/openapi.json"])
def test_the_service_owns(path: str) -> None:
    assert is_api(path)


@pytest.mark.parametrize("path", ["/", "", "/v10/", "/guide/v1/", "/widgets/", "//v1/chat", "/index.html"])
def test_the_documentation_owns(path: str) -> None:
    assert not is_api(path)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/health"), ("GET", "/openapi.json"), ("GET", "/v1/nope"), ("POST", "/v1/chat"), ("PUT", "/v1/chat")],
)
def test_whatever_the_service_says_is_neither_sniffed_nor_stored(method: str, path: str) -> None:
    response = Client(create_app(Scripted())).request(method, path)
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"] == "no-store"


def test_a_refused_origin_gets_them_too() -> None:
    response = Client(create_app(Scripted())).get("/v1/health", headers={"origin": "https://evil.com"})
    assert (response.status_code, response.headers["x-content-type-options"]) == (403, "nosniff")
