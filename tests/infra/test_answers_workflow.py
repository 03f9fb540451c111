"""The workflows that comment what a change does to answers: their own steps, in a scratch repository."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.shell import clean
from infra.conftest import ROOT

GITHUB: dict[Any, Any] = yaml.safe_load((ROOT / "infra" / "workflows" / "answers.yml").read_text("utf-8"))
GITLAB: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "gitlab" / "answers.yml").read_text("utf-8"))["answers"]
#: Writes down how it was called, in place of the program that would call the service.
STAND_IN = '#!/bin/sh\nprintf "%s\\n" "$@" > called.txt\n'
LIME = "# Cleaning\n\nVinegar dissolves the lime in a kettle.\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose last commit takes the answer of a question away."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "bin").mkdir()
    for program in ("gh", "curl", "pip"):
        (tmp_path / "bin" / program).write_text(STAND_IN)
        (tmp_path / "bin" / program).chmod(0o755)
    (tmp_path / ".gitignore").write_text("bin\n.*\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: Tea\nsite_url: https://tea.example.com/\n")
    (tmp_path / "docs" / "index.md").write_text("# Tea\n\nAll about tea.\n")
    (tmp_path / "docs" / "clean.md").write_text(LIME)
    (tmp_path / "questions.jsonl").write_text(
        json.dumps({"id": "lime", "question": "What dissolves lime in a kettle?"})
    )
    for name in ("before", "after"):
        commit = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", name]
        for command in (["git", "init", "--quiet"], ["git", "add", "."], commit):
            subprocess.run(command, cwd=tmp_path, check=True)
        (tmp_path / "docs" / "clean.md").write_text("# Cleaning\n\nBuy a new one.\n")
    return tmp_path


def bash(repository: Path, script: str, **own: str) -> int:
    path = f"{repository / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = clean({"PATH": path, "NO_MKDOCS_2_WARNING": "1", **own})
    command = ["bash", "--noprofile", "--norc", "-e", "-c", script]
    return subprocess.run(command, cwd=repository, env=environment).returncode


def base(repository: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_the_action_comments_a_lost_answer_and_fails(repository: Path) -> None:
    steps = {step["name"]: step for job in GITHUB["jobs"].values() for step in job["steps"] if "run" in step}
    own = {"BASE": base(repository), "BUILD": steps["Compare"]["env"]["BUILD"], "GITHUB_STEP_SUMMARY": "summary.md"}
    assert bash(repository, steps["Compare"]["run"], **own) == 3
    assert bash(repository, steps["Show"]["run"], **own) == 0
    assert "Vinegar dissolves the lime" in (repository / "summary.md").read_text("utf-8")
    assert bash(repository, steps["Comment"]["run"], NUMBER="7", REPOSITORY="tea/docs") == 0
    called = (repository / "called.txt").read_text().split("\n")
    assert called[:3] == ["pr", "comment", "7"]
    assert (repository / called[called.index("--body-file") + 1]).exists()


def test_only_the_job_that_runs_nothing_may_write() -> None:
    writing = [name for name, job in GITHUB["jobs"].items() if "write" in job["permissions"].values()]
    assert writing == ["comment"]
    uses = [step["uses"].partition("@")[0] for step in GITHUB["jobs"]["comment"]["steps"] if "uses" in step]
    assert uses == ["actions/download-artifact"]


@pytest.mark.slow
def test_the_job_of_gitlab_comments_a_lost_answer_and_fails(repository: Path) -> None:
    own = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base(repository), "BUILD": GITLAB["variables"]["BUILD"]}
    assert bash(repository, "\n".join(GITLAB["script"]), **own) == 3
    where = {"CI_API_V4_URL": "https://gitlab.example.com/api/v4", "CI_MERGE_REQUEST_PROJECT_ID": "1"}
    (repository / "called.txt").unlink()
    script = "\n".join(GITLAB["after_script"])
    assert bash(repository, script, CI_MERGE_REQUEST_IID="7", **where) == 0
    assert not (repository / "called.txt").exists()
    assert bash(repository, script, CI_MERGE_REQUEST_IID="7", COMMENT_TOKEN="t", **where) == 0
    assert (
        "https://gitlab.example.com/api/v4/projects/1/merge_requests/7/notes" in (repository / "called.txt").read_text()
    )
