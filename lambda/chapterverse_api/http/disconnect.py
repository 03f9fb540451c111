"""Ends the work for a client that disconnects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from anyio import CancelScope, create_task_group
from starlette.types import Receive

from chapterverse_api.deadline import Deadline


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


async def _watch(receive: Receive, deadline: Deadline, working: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    deadline.abort()
    working.cancel()
