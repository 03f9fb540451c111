"""The tools that check the deployment, each from its own lock and without network access."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from infra.desk import Desk

ROOT = Path(__file__).parents[2]
#: Runs a program of `infra/lint.txt` or `infra/checkov.txt`: the set's name, the program and its arguments.
Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    # No credentials, no settings of this machine, and a proxy that nobody listens at.
    offline = {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true", "SAM_CLI_TELEMETRY": "0"}
    offline |= {"HOME": str(home), "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}

    def run(name: str, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [programs(name) / program, *arguments]
        return subprocess.run(command, cwd=ROOT, env=kept | offline, capture_output=True, text=True)

    return run


def programs(name: str) -> Path:
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "tools.py", name]
    return Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


@pytest.fixture
def desk(tool: Tool, tmp_path: Path) -> Iterator[Desk]:
    # Only here, as it loads moto.
    from infra.desk import made

    # The stand-in and the scripts run by the Python of the tools, which `tool` made.
    assert tool("lint", "python", "--version").returncode == 0
    with made(tmp_path, ROOT / ".cache" / "infra" / "lint" / "bin" / "python") as desk:
        yield desk
