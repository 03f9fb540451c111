"""The workflows that comment what a change does to answers: their own steps, in a scratch repository."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.shell import clean
from infra.conftest import ROOT

GITHUB: dict[Any, Any] = yaml.safe_load((ROOT / "infra" / "workflows" / "answers.yml").read_text("utf-8"))
GITLAB: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "gitlab" / "answers.yml").read_text("utf-8"))
#: Writes down how it was called, in place of the program that would call the service, and gives the notes there are.
STAND_IN = '#!/bin/sh\nprintf "%s\\n" "$@" > called.txt\n[ -z "$NOTES" ] || printf "%s\\n" "$NOTES" | tee notes.json\n'
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
    own["GITHUB_OUTPUT"] = "output"
    assert bash(repository, steps["Compare"]["run"], **own) == 3
    assert bash(repository, steps["Show"]["run"], **own) == 0
    assert "Vinegar dissolves the lime" in (repository / "summary.md").read_text("utf-8")
    assert (repository / "output").read_text("utf-8") == "written=true\n"
    for notes, place in (("", "issues/7/comments"), ("17", "issues/comments/17")):
        assert bash(repository, steps["Comment"]["run"], NUMBER="7", REPOSITORY="tea/docs", NOTES=notes) == 0
        called = (repository / "called.txt").read_text().split("\n")
        assert f"repos/tea/docs/{place}" in called
        assert ("PATCH" in called) is bool(notes)
        assert "body=@answers.md" in called
    marked = re.findall(r'startswith\("(.*?)"\)', steps["Comment"]["run"])
    assert (repository / "answers.md").read_text("utf-8").startswith(marked[0])


def test_only_the_job_that_runs_nothing_may_write() -> None:
    writing = [name for name, job in GITHUB["jobs"].items() if "write" in job["permissions"].values()]
    assert writing == ["comment"]
    uses = [step["uses"].partition("@")[0] for step in GITHUB["jobs"]["comment"]["steps"] if "uses" in step]
    assert uses == ["actions/download-artifact"]


@pytest.mark.slow
def test_the_job_of_gitlab_comments_a_lost_answer_and_fails(repository: Path) -> None:
    compare, comment = GITLAB["answers"], GITLAB["answers-comment"]
    own = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base(repository), "BUILD": compare["variables"]["BUILD"]}
    assert bash(repository, "\n".join(compare["script"]), **own) == 3
    where = {"CI_API_V4_URL": "https://gitlab.example.com/api/v4", "CI_MERGE_REQUEST_PROJECT_ID": "1"}
    (repository / "called.txt").unlink()
    assert "COMMENT_TOKEN" not in json.dumps(compare)
    assert comment["variables"] == {"GIT_STRATEGY": "none"}
    script = "\n".join(comment["script"])
    assert bash(repository, script, CI_MERGE_REQUEST_IID="7", **where) == 0
    assert not (repository / "called.txt").exists()
    marked = [{"id": 16, "body": "Other"}, {"id": 17, "body": (repository / "answers.md").read_text("utf-8")}]
    for notes, place in (("[]", "notes"), (json.dumps(marked), "notes/17")):
        assert bash(repository, script, CI_MERGE_REQUEST_IID="7", COMMENT_TOKEN="t", NOTES=notes, **where) == 0
        called = (repository / "called.txt").read_text().split("\n")
        assert f"https://gitlab.example.com/api/v4/projects/1/merge_requests/7/{place}" in called
        assert ("PUT" in called) is (place != "notes")
