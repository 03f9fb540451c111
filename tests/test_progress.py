from __future__ import annotations

import os
import pty
import subprocess
import sys
from threading import Barrier, Event

import pytest

from chapterverse.progress import map_in_threads

PROGRAM = """
from chapterverse import progress
with progress.bar() as report:
    for done in range(4):
        report("Reading pages", done, 3)
    report("Writing chunks", 0, 0)
print("done")
"""


def test_without_a_terminal_nothing_is_drawn() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr.strip()) == ("done\n", "")


def test_on_a_terminal_stages_are_drawn_with_counts() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=theirs, env=environment, check=True
    )
    os.close(theirs)
    drawn = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.stdout == b"done\n"
    assert "Reading pages" in drawn
    assert "3/3" in drawn


def test_threads_yield_the_results_in_order() -> None:
    together = Barrier(3)

    def double(n: int) -> int:
        together.wait(10)
        return 2 * n

    assert [*map_in_threads(double, range(6), 3)] == [0, 2, 4, 6, 8, 10]


def test_an_error_in_a_thread_is_raised_in_its_place_and_ends_the_work() -> None:
    begun = list[int]()
    ends = Event()

    def work(n: int) -> int:
        begun.append(n)
        if n == 1:
            raise ValueError(n)
        return n if n == 0 else ends.wait(10)

    results = map_in_threads(work, range(1000), 2)
    assert next(results) == 0
    with pytest.raises(ValueError, match="1"):
        next(results)
    ends.set()
    assert len(begun) < 1000
