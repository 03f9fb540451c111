from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.scripted import Client, Scripted, error_of
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import ErrorResponse


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/nope", "/v1/chat/", "/v1/schemas", "/mcp", "/docs", "/%00", "//"]
)
def test_an_unknown_address_is_404_in_our_shape(path: str) -> None:
    response = Client(create_app(Scripted())).get(path)
    assert response.status_code == 404
    assert error_of(response)["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat", "POST"),
        ("PUT", "/v1/retrieve", "POST"),
        ("POST", "/v1/health", "GET"),
        ("OPTIONS", "/v1/chat", "POST"),
    ],
)
def test_a_wrong_method_is_405_and_says_which_is_right(method: str, path: str, allow: str) -> None:
    response = Client(create_app(Scripted())).request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allow)
    assert error_of(response)["code"] == "method_not_allowed"


def test_routes_that_come_later_are_not_announced() -> None:
    chat = {"/v1/chat", "/v1/chat/completions", "/v1/models", "/v1/models/chapterverse"}
    others = {"/v1/plans", "/v1/retrieve", "/v1/feedback", "/v1/schema", "/v1/health", "/v1/status"}
    assert set(_openapi()["paths"]) == chat | others


@pytest.mark.parametrize("path", ["/v1/chat", "/v1/retrieve"])
def test_openapi_tells_every_answer_of_a_question(path: str) -> None:
    operation = _openapi()["paths"][path]["post"]
    assert operation["requestBody"]["required"] is True
    assert set(operation["responses"]) == {"200", "400", "403", "413", "415", "422", "429", "500", "503"}
    for status, response in operation["responses"].items():
        if status != "200":
            assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}


@pytest.mark.parametrize("path", ["/v1/chat", "/v1/chat/completions"])
def test_openapi_tells_of_the_stream(path: str) -> None:
    answer = _openapi()["paths"][path]["post"]["responses"]["200"]["content"]
    assert set(answer) == {"application/json", "text/event-stream"}


def test_openapi_tells_of_openais_errors() -> None:
    operation = _openapi()["paths"]["/v1/chat/completions"]["post"]
    assert operation["requestBody"]["required"] is True
    assert set(operation["responses"]) == {"200", "400", "403", "413", "415", "422", "429", "500", "503"}
    error = operation["responses"]["422"]["content"]["application/json"]["schema"]["properties"]["error"]
    assert set(error["properties"]) == {"message", "type", "param", "code"}


def test_every_reference_in_openapi_leads_somewhere() -> None:
    document = _openapi()
    references = [r.removeprefix("#/components/schemas/") for r in _references(document)]
    assert references
    assert set(references) <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in document["components"]["schemas"]
    assert document["components"]["schemas"]["ErrorResponse"]["title"] == ErrorResponse.__name__


def test_a_503_names_the_sites_own_search_as_far_as_the_site_is_known(tmp_path: Path) -> None:
    nowhere = Settings(store=f"edge:{tmp_path}/nothing", base_url="https://docs.example.com/")
    refused = Client(create_app(settings=nowhere)).post("/v1/chat", {"query": "a"})
    assert refused.status_code == 503
    assert "https://docs.example.com/" in error_of(refused)["message"]
    app = create_app(quill.service(quill.publish(tmp_path)))
    assert Client(app).post("/v1/chat", {"query": "cache"}).status_code == 200
    for file in tmp_path.glob("*/*/head.json"):
        file.write_text("{")
    refused = Client(app).post("/v1/chat", {"query": "cache"})
    assert refused.status_code == 503
    assert quill.BASE in error_of(refused)["message"]


def test_an_origin_that_is_none_fails_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="is no origin"):
        create_app(settings=Settings(allowed_origins="*"))


def test_settings_come_from_the_service_when_none_are_given() -> None:
    client = Client(create_app(Scripted(settings=Settings(allowed_origins="https://docs.example.com"))))
    assert client.get("/v1/health", headers={"origin": "https://docs.example.com"}).status_code == 200
    assert client.get("/v1/health", headers={"origin": "https://api.example.com"}).status_code == 403


def test_the_application_starts_without_the_parts_that_a_lambda_does_not_need() -> None:
    script = (
        "import sys, json; from chapterverse_api.app import create_app; from chapterverse.settings import Settings;"
        "create_app(settings=Settings()); print(json.dumps(sorted(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert "fastapi" in loaded
    assert not loaded & {"httpx", "cohere", "qdrant_client", "mkdocs", "typer", "boto3"}


def _openapi() -> dict[str, Any]:
    document: dict[str, Any] = Client(create_app(Scripted())).get("/openapi.json").json()
    return document


def _references(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [r for value in node.values() for r in _references(value)]
    if isinstance(node, list):
        return [r for value in node for r in _references(value)]
    return []
