from __future__ import annotations

from api.scripted import Client, Scripted, error_of
from chapterverse import __version__
from chapterverse.errors import IndexMissing
from chapterverse_api.app import create_app


def test_health_asks_nobody() -> None:
    service = Scripted([IndexMissing("x")])
    assert Client(create_app(service)).get("/v1/health").json() == {"status": "ok"}
    assert len(service.queue) == 1


def test_status_tells_what_is_served() -> None:
    response = Client(create_app(Scripted())).get("/v1/status")
    assert response.json() == {
        "version": __version__,
        "status": "ok",
        "indexes": [],
        "models": {"embedder": "none"},
        "degraded": [],
    }


def test_status_without_an_index_is_503() -> None:
    response = Client(create_app(Scripted([IndexMissing("x")]))).get("/v1/status")
    assert (response.status_code, error_of(response)["code"]) == (503, "index_missing")
