"""`make nightly` runs every benchmark that has a bar."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from infra.conftest import ROOT


@pytest.mark.parametrize("name", ["cold_start.py", "opening.py", "load.py"])
def test_a_benchmark_that_has_a_bar_is_run(name: str) -> None:
    command = ["make", "--dry-run", "nightly"]
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # Each ends the task if its bar is missed.
    (line,) = [line for line in plan.splitlines() if "/python benchmarks/" in line]
    runs, _, rest = line.removeprefix("for run in ").partition("; do ")
    assert rest == ".venv/bin/python benchmarks/$run || exit 1; done"
    assert name in shlex.split(runs)
