from __future__ import annotations

import asyncio
import threading

import httpx

from api.scripted import Client, Scripted, error_of
from chapterverse import __version__
from chapterverse.errors import IndexMissing
from chapterverse_api.app import create_app
from chapterverse_api.contract import ServiceStatus


def test_health_asks_nobody() -> None:
    service = Scripted([IndexMissing("x")])
    assert Client(create_app(service)).get("/v1/health").json() == {"status": "ok"}
    assert len(service.queue) == 1


def test_a_monitor_may_ask_by_head() -> None:
    service = Scripted([IndexMissing("x")])
    for path in ("/v1/health", "/v1/status"):
        response = Client(create_app(service)).request("HEAD", path)
        assert (response.status_code, response.content) == (200, b"")
    assert len(service.queue) == 1


def test_status_tells_what_is_served() -> None:
    response = Client(create_app(Scripted())).get("/v1/status")
    assert response.json() == {
        "version": __version__,
        "status": "ok",
        "indexes": [],
        "models": {"embedder": "none"},
        "degraded": [],
        "mcp": False,
    }


def test_status_without_an_index_is_503() -> None:
    response = Client(create_app(Scripted([IndexMissing("x")]))).get("/v1/status")
    assert (response.status_code, error_of(response)["code"]) == (503, "index_missing")


class Hanging(Scripted):
    """One whose status waits for a store that hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.over = threading.Event(), threading.Event()

    def status(self) -> ServiceStatus:
        self.begun.set()
        assert self.over.wait(30)
        return super().status()


def test_whoever_asks_for_the_status_of_a_store_that_hangs_holds_no_reader_up() -> None:
    service = Hanging()

    async def run() -> tuple[int, list[int]]:
        transport = httpx.ASGITransport(app=create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            waiting = [asyncio.ensure_future(client.get("/v1/status")) for _ in range(150)]
            try:
                while not service.begun.is_set():
                    await asyncio.sleep(0.01)
                answer = await asyncio.wait_for(client.post("/v1/chat", json={"query": "a"}), 10)
            finally:
                service.over.set()
            return answer.status_code, [status.status_code for status in await asyncio.gather(*waiting)]

    assert asyncio.run(run()) == (200, [200] * 150)
