"""Long work: its progress, by a callback and a bar on standard error, and threads that an interrupt can end.

Without a terminal only stages that start with `WAITING` are printed, as one line: a run that does nothing for a minute
should say why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

#: Called with (stage, number done, total number).
Progress: TypeAlias = Callable[[str, int, int], None]

WAITING = "Waiting"

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def track(progress: Progress, stage: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """Yield each item, and report how many are done."""
    for done, item in enumerate(items):
        progress(stage, done, len(items))
        yield item
    progress(stage, len(items), len(items))


def map_in_threads(function: Callable[[_Item], _Result], items: Sequence[_Item], threads: int) -> Iterator[_Result]:
    """Yield the result for each item, in order; raise the first error.

    Another thread runs the pool, since Ctrl-C could strike the main one while it holds a lock that the pool waits for.
    """
    from concurrent.futures import ThreadPoolExecutor

    outcomes, pool = SimpleQueue[tuple[Any, BaseException | None]](), ThreadPoolExecutor(threads)

    def run() -> None:
        try:
            for result in pool.map(function, items):
                outcomes.put((result, None))
        except BaseException as error:
            outcomes.put((None, error))

    Thread(target=run, daemon=True).start()
    try:
        for _ in items:
            result, error = outcomes.get()
            if error is not None:
                raise error
            yield result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Yield a progress callback that draws one bar for each stage on a terminal."""
    with contextlib.ExitStack() as stack:
        # What draws is opened here, as loading it takes longer than a build without changes.
        draw = cache(lambda: stack.enter_context(_bars()))
        yield lambda stage, done, total: draw()(stage, done, total)


@contextlib.contextmanager
def _bars() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
                if stage.startswith(WAITING) and not console.is_terminal:
                    console.print(stage, markup=False, highlight=False, soft_wrap=True)
            bars.update(tasks[stage], completed=done, total=total)

        yield report
