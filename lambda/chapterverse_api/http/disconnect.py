"""Ends the work for a client that disconnects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from anyio import CancelScope, create_task_group, to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chapterverse_api.deadline import Deadline


class WorkerResponse(Response):
    """Runs `respond` in a worker thread and sends the response that it returns.

    If the client disconnects, `deadline` is aborted: the work ends, and nothing more is paid for.
    """

    def __init__(self, respond: Callable[[], Response], deadline: Deadline) -> None:
        super().__init__()
        self._respond = respond
        self._deadline = deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await cancel_on_disconnect(receive, self._deadline, partial(self._send, scope, receive, send))

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await to_thread.run_sync(self._respond)
        await response(scope, receive, send)


async def cancel_on_disconnect(receive: Receive, deadline: Deadline, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work. If the client disconnects meanwhile, abort the turn and ignore failures.

    Starlette's own way works on some servers only, and can't wake a waiting thread.
    """
    failure: Exception | None = None
    async with create_task_group() as tasks:
        tasks.start_soon(_watch, receive, deadline, tasks.cancel_scope)
        try:
            await work()
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure and not deadline.is_aborted:
        raise failure


async def _watch(receive: Receive, deadline: Deadline, work_scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    deadline.abort()
    work_scope.cancel()
