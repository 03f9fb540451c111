"""Progress of long work: a callback, and a bar on standard error.

Without a terminal only stages that start with `WAITING` are printed, as one line: a run that does nothing for a minute
should say why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeAlias, TypeVar

#: Called with (stage, number done, total number).
Progress: TypeAlias = Callable[[str, int, int], None]

WAITING = "Waiting"

_Item = TypeVar("_Item")


def track(progress: Progress, stage: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """Yield each item, and report how many are done."""
    for done, item in enumerate(items):
        progress(stage, done, len(items))
        yield item
    progress(stage, len(items), len(items))


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
