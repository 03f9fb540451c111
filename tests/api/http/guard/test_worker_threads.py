from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx

from api.scripted import WHOLE, Scripted
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import Events
from chapterverse_api.http.guard.worker_threads import THREADS


class Meeting(Scripted):
    """Answers nobody before all are there."""

    def __init__(self, guests: int) -> None:
        super().__init__(settings=Settings(rates="off"))
        self.barrier = threading.Barrier(guests, timeout=20)

    def chat(self, *arguments: Any, **options: Any) -> Events:
        self.barrier.wait()
        yield from WHOLE


def test_readers_who_wait_for_a_model_do_not_wait_for_each_other() -> None:
    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=create_app(Meeting(THREADS)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            questions = (client.post("/v1/chat", json={"query": "a"}, timeout=60) for _ in range(THREADS))
            return await asyncio.gather(*questions)

    assert {response.status_code for response in asyncio.run(ask())} == {200}
