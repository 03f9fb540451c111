"""Progress of long work: a callback, and a bar on standard error.

Where standard error is no terminal nothing is drawn. What begins with `WAITING` is a line there all the same: a run
that does nothing for a minute should say why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeAlias

#: Called with (what is being done, how many are done, how many there are).
Progress: TypeAlias = Callable[[str, int, int], None]

WAITING = "Waiting"


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Yield a function for `sync.index`: one bar for each stage, shown only on a terminal."""
    # Imported here, since a docs build loads this module and seldom has a terminal to draw on.
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
