"""The environment of the benchmarks that need peers, whose packages are dependencies of the benchmarks only."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".cache" / "benchmarks"
LOCK = ROOT / "benchmarks" / "requirements.txt"


def enter() -> None:
    """Restart this program in that environment, which is recreated if the lock changed."""
    if sys.prefix == str(HOME):
        return
    python, mark = HOME / "bin" / "python", HOME / "lock"
    if not mark.exists() or mark.read_bytes() != LOCK.read_bytes():
        venv.create(HOME, clear=True, with_pip=True)
        install: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
        ]
        subprocess.run([*install, "-r", LOCK], check=True)
        mark.write_bytes(LOCK.read_bytes())
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT / "plugin"), str(ROOT / "lambda")))
    os.execv(python, [str(python), *sys.argv])
