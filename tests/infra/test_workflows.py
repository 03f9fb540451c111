"""The workflows for users to copy: their steps, and that a stranger can't abuse them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from chapterverse.cli import app
from infra.conftest import ROOT, Tool

WORKFLOWS = sorted((ROOT / "infra" / "workflows").glob("*.yml"))
PLANTED = """
on: pull_request_target
jobs:
  planted:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - run: echo ${{ github.event.pull_request.title }}
"""


def findings(tool: Tool, *files: Path) -> set[str]:
    """Return the kinds of what zizmor finds at medium and above."""
    done = tool("lint", "zizmor", "--offline", "--min-severity", "medium", "--format", "json", *files)
    return {found["ident"] for found in json.loads(done.stdout)}


def test_zizmor_finds_nothing(tool: Tool) -> None:
    assert len(WORKFLOWS) == 5
    assert findings(tool, *WORKFLOWS) == set()


def test_planted_faults_are_found(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / ".github" / "workflows" / "planted.yml"
    file.parent.mkdir(parents=True)
    file.write_text(PLANTED, "utf-8")
    assert findings(tool, file) >= {"dangerous-triggers", "template-injection", "unpinned-uses"}


def read(file: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(file.read_text("utf-8"))
    return found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda f: str(f.name))
def test_nothing_is_granted_that_a_job_does_not_ask_for(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {}
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        assert "${{" not in step.get("run", "")
        assert re.search(r"@[0-9a-f]{40}$", step["uses"]) if "uses" in step else True
        assert not str(step.get("uses")).startswith("actions/checkout") or step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda f: str(f.name))
def test_a_pull_request_gets_no_token_and_no_key(file: Path) -> None:
    workflow = read(file)
    # YAML 1.1 reads the word "on" as true.
    if {"pull_request", "pull_request_target"} & set(workflow[True]):
        assert "secrets." not in file.read_text("utf-8")
        assert all("id-token" not in job.get("permissions", {}) for job in workflow["jobs"].values())


PAGES = sorted((ROOT / "site_example").glob("*/**/*.md"))
#: Those where the package is installed at first; an extra that is added later belongs to what is installed.
INSTALLING = [
    page for page in PAGES
    if page.parent.name in ("generators", "getting-started")
    or page.name in ("deploy.md", "deploying.md", "cost.md")
]  # fmt: skip


@pytest.mark.parametrize("file", [*WORKFLOWS, *INSTALLING], ids=lambda f: f.relative_to(ROOT).as_posix())
def test_nothing_is_installed_by_a_name_that_anybody_may_register(file: Path) -> None:
    text = file.read_text("utf-8")
    installs = re.findall(r"(?:run: |\$ |  )pip install (.+)", text)
    # Our own package has no release: what is installed is a file of the repository, or what such a file names.
    ours = re.compile(
        r"(?:--quiet --no-deps --require-hashes )?-r (?:infra/release|requirements(?:-index)?)\.txt|-e \"?\."
    )
    assert [line for line in installs if not ours.match(line)] == []


@pytest.mark.parametrize("file", [*WORKFLOWS, *PAGES], ids=lambda f: f.relative_to(ROOT).as_posix())
def test_no_placeholder_runs(file: Path) -> None:
    text = file.read_text("utf-8")
    assert not re.search(r"git\+https|github\.com/OWNER|@0{8}|uses: [\w./-]+@(?![0-9a-f]{40} # v)", text)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda f: str(f.name))
def test_tasks_are_those_of_the_makefile(file: Path) -> None:
    tasks = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    runs = "\n".join(s["run"] for job in read(file)["jobs"].values() for s in job["steps"] if "run" in s)
    assert set(re.findall(r"^make ([a-z-]+)", runs, re.MULTILINE)) <= tasks


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda f: str(f.name))
def test_commands_are_those_of_our_program(file: Path) -> None:
    known: dict[str, Any] = getattr(get_command(app), "commands")  # noqa: B009 (a group, says Typer; its type does not)
    runs = "\n".join(s["run"] for job in read(file)["jobs"].values() for s in job["steps"] if "run" in s)
    for command, rest in re.findall(r"chapterverse (\w+)((?:[^\n]|\\\n)*)", runs):
        options = {option for parameter in known[command].load().params for option in parameter.opts}
        assert set(re.findall(r"(?<= )--[a-z-]+", rest)) <= options, command
