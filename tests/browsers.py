"""The browsers that tests drive: where they are, or why a test has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def browser_path(name: str) -> str:
    """Return the path of a Chromium or Firefox; skip or fail the test if there is none, as `scripts/browser.py` says.

    Args:
        name: in lower case.
    """
    # `make test` has looked already, found none, and said so.
    if os.environ.get(f"CHAPTERVERSE_{name.upper()}") == "":
        pytest.skip(f"There is no {name.capitalize()} for the browser tests.")
    finder: list[str | Path] = [sys.executable, SCRIPTS / f"{name}.py"]
    done = subprocess.run(finder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said = done.stderr.strip().rpartition("\n")[2]
    if done.returncode != 0:
        pytest.fail(said, pytrace=False)
    if not (path := done.stdout.strip()):
        pytest.skip(said)
    return path
