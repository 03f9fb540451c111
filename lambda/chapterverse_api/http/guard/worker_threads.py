"""Limits the number of concurrent requests of one process."""

from __future__ import annotations

from anyio.to_thread import current_default_thread_limiter
from starlette.types import ASGIApp, Receive, Scope, Send

#: A core makes some 30 answers a second (`benchmarks/load.py`), and each answer holds a thread while models think: with
#: answers of four seconds, 120 wait at a time. anyio's default of 40 would leave two thirds of the core idle.
THREADS = 128


class WorkerThreads:
    """Sets anyio's limit of worker threads. The limit belongs to an event loop, so it is set during a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        current_default_thread_limiter().total_tokens = THREADS
        await self._app(scope, receive, send)
