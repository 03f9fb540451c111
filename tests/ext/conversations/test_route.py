from __future__ import annotations

from pathlib import Path

import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery
from chapterverse_api.ext.conversations.threads import Threads
from ext.conversations.test_threads import answered

DOCS = "https://docs.example.com"


def remembering(records: Path) -> Scripted:
    """Return a scripted service that keeps threads."""
    return Scripted(settings=Settings(records=f"sqlite:{records}", allowed_origins=DOCS))


@pytest.fixture
def service(tmp_path: Path) -> Scripted:
    return remembering(tmp_path / "records.sqlite")


def kept(service: Scripted, thread_id: str) -> int:
    assert isinstance(service.resources.threads, Threads)
    return len(service.resources.threads.recall(thread_id).turns)


def test_a_thread_is_forgotten_and_no_other(service: Scripted) -> None:
    assert isinstance(service.resources.threads, Threads)
    for name in ("abc-1", "abc-2"):
        service.resources.threads.remember(name, ChatQuery(query="q"), answered())
    response = Client(create_app(service)).request("DELETE", "/v1/threads/abc-1")
    assert (response.status_code, response.content) == (204, b"")
    assert (kept(service, "abc-1"), kept(service, "abc-2")) == (0, 1)


def test_whether_there_was_one_is_not_told(service: Scripted) -> None:
    assert isinstance(service.resources.threads, Threads)
    service.resources.threads.remember("known", ChatQuery(query="q"), answered())
    known, unknown = Client(create_app(service)).many(
        ("DELETE", f"/v1/threads/{name}", {}) for name in ("known", "unknown")
    )
    assert known.headers.pop("x-request-id") != unknown.headers.pop("x-request-id")
    assert (known.status_code, known.headers, known.content) == (unknown.status_code, unknown.headers, unknown.content)


@pytest.mark.parametrize("name", ["a b", "a%00b", "ü", "a.b", "a" * 65, "'; DROP TABLE conversations; --"])
def test_a_name_that_no_thread_has_is_refused(service: Scripted, name: str) -> None:
    response = Client(create_app(service)).request("DELETE", f"/v1/threads/{name}")
    assert (response.status_code, error_of(response)["field"]) == (422, "thread_id")
    assert name not in response.text


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH"])
def test_a_thread_can_only_be_forgotten(service: Scripted, method: str) -> None:
    response = Client(create_app(service)).request(method, "/v1/threads/abc")
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")


def test_where_none_is_kept_there_is_no_such_route() -> None:
    app = create_app(Scripted())
    response = Client(app).request("DELETE", "/v1/threads/abc")
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")
    assert not [path for path in app.openapi()["paths"] if "threads" in path]


def test_it_stands_in_the_documents_where_threads_are_kept(service: Scripted) -> None:
    operation = create_app(service).openapi()["paths"]["/v1/threads/{thread_id}"]["delete"]
    assert {"204", "403", "422", "503"} <= operation["responses"].keys()


def test_a_foreign_page_forgets_nothing(service: Scripted) -> None:
    assert isinstance(service.resources.threads, Threads)
    service.resources.threads.remember("abc", ChatQuery(query="q"), answered())
    asked = {"headers": {"origin": "https://evil.example"}}
    assert Client(create_app(service)).request("DELETE", "/v1/threads/abc", **asked).status_code == 403
    assert kept(service, "abc") == 1


def test_a_page_of_the_docs_may_forget(service: Scripted) -> None:
    headers = {"origin": DOCS, "access-control-request-method": "DELETE"}
    preflight = Client(create_app(service)).request("OPTIONS", "/v1/threads/abc", headers=headers)
    assert preflight.status_code == 204
    assert "DELETE" in preflight.headers["access-control-allow-methods"].split(", ")
    assert Client(create_app(service)).request("DELETE", "/v1/threads/abc", headers=headers).status_code == 204


def test_a_database_that_fails_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"no database" * 100)
    response = Client(create_app(remembering(broken))).request("DELETE", "/v1/threads/abc")
    assert (response.status_code, error_of(response)["code"]) == (503, "records_unavailable")
    assert str(tmp_path) not in response.text
