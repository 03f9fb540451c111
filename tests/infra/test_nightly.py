"""`make nightly` runs every benchmark that has a bar."""

from __future__ import annotations

import subprocess

import pytest

from infra.conftest import ROOT


@pytest.mark.parametrize("name", ["cold_start.py", "opening.py", "load.py"])
def test_a_benchmark_that_has_a_bar_is_run(name: str) -> None:
    command = ["make", "--dry-run", "nightly"]
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # At the line's end: nothing after it makes a bar that was missed look well.
    assert f"/python benchmarks/{name}\n" in plan
