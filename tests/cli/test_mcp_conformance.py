"""The protocol's own conformance suite, and its inspector, against `serve`."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import quill
from cli.shell import Shell
from cli.test_serve import served
from conftest import ROOT
from generators.project import install

HERE = Path(__file__).parent
SUITE = ROOT / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
REVISION = "2026-07-28"
#: Checks of the suite that count for or against a server; it also notes what it saw, and skips some.
COUNTED = {"SUCCESS", "FAILURE", "WARNING"}
PASSED = 100

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("docs"))
    quill.publish(shell.root / ".cache/plugin/chapterverse")
    return shell


def expected() -> dict[str, str]:
    """Return the reason of each failure that is known."""
    groups = yaml.safe_load((HERE / "mcp_expected_failures.yml").read_text("utf-8"))
    return {check: group["reason"] for group in groups for check in group["checks"]}


def run(node: Path, *arguments: str | Path, code: int | None = 0) -> str:
    done = subprocess.run([node, *arguments], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_suite_fails_where_it_is_known_to_and_nowhere_else(node: Path, docs: Shell, tmp_path: Path) -> None:
    with served(docs, CHAPTERVERSE_MCP="1", CHAPTERVERSE_RATES="off") as running:
        address = f"{running.address}/mcp"
        # It exits with 1 for failures, which the results name one by one.
        run(node, SUITE, "server", "--url", address, "--requirements", REVISION, "-o", tmp_path, code=None)
    found: dict[str, Counter[str]] = {}
    for file in tmp_path.glob("*/checks.json"):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        for check in json.loads(file.read_text("utf-8")):
            found.setdefault(f"{scenario}/{check['id']}", Counter())[check["status"]] += 1
    counted = {name: statuses for name, statuses in found.items() if COUNTED & set(statuses)}
    failed = {name for name, statuses in counted.items() if set(statuses) & {"FAILURE", "WARNING"}}
    assert failed - set(expected()) == set(), "fails, and is not known to"
    assert set(expected()) - failed == set(), "is known to fail, and does not"
    assert sum(statuses["SUCCESS"] for statuses in counted.values()) >= PASSED


def test_every_known_failure_has_a_reason() -> None:
    assert expected()
    assert all(reason.endswith(".") and len(reason) > 30 for reason in expected().values())


def test_the_inspector_lists_and_calls(node: Path, docs: Shell) -> None:
    home = ROOT / ".cache/inspector"
    install(HERE / "inspector", home)
    program = home / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    with served(docs, CHAPTERVERSE_MCP="1", CHAPTERVERSE_RATES="off") as running:

        def inspect(*arguments: str) -> Any:
            command = ("--cli", f"{running.address}/mcp", "--transport", "http", *arguments)
            return json.loads(run(node, program, *command))

        tools = inspect("--method", "tools/list")["tools"]
        assert {tool["name"] for tool in tools} == {"search_docs", "read_section", "ask_docs", "verify_claim"}
        claim = "claim=`quill cache clean` removes every entry."
        called = inspect("--method", "tools/call", "--tool-name", "verify_claim", "--tool-arg", claim)
        assert called["structuredContent"]["verdict"] == "supported"
        pages = inspect("--method", "resources/list")["resources"]
        assert f"{quill.BASE}cache/" in {page["uri"] for page in pages}
