from __future__ import annotations

import os
import pty
import subprocess
import sys

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
