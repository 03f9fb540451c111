"""The workflow for pull requests: its rights, and its own steps over a small site."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.shell import clean

FILE = Path(__file__).parents[2] / "infra" / "workflows" / "evaluate.yml"
TEXT = FILE.read_text("utf-8")
# YAML 1.1 reads the key `on` as true.
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["evaluate"]["steps"]

GREEN = "# Green tea\n\nTea of unfermented leaves.\n\n## Temperature\n\nEighty degrees are enough for green tea.\n"
LIME = "# Cleaning\n\nVinegar dissolves the lime in a kettle.\n"
QUESTIONS = (
    {"id": "green", "question": "How many degrees for green tea?", "expected": ["green/#temperature"]},
    {"id": "lime", "question": "What dissolves lime in a kettle?", "expected": ["clean/#cleaning"]},
    {"id": "cup", "question": "Who won the world cup?", "answerable": False},
)


def test_a_stranger_gets_no_more_than_a_look() -> None:
    assert set(WORKFLOW[True]) == {"pull_request"}
    assert WORKFLOW["permissions"] == {}
    assert [job["permissions"] for job in WORKFLOW["jobs"].values()] == [{"contents": "read"}]
    assert "secrets." not in TEXT
    # Nothing that a stranger names is put into a script.
    assert not [step for step in STEPS if "${{" in step.get("run", "")]
    assert all(step["with"]["persist-credentials"] is False for step in STEPS if "checkout" in step.get("uses", ""))


def test_actions_are_pinned_to_commits_and_say_their_version() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) == 4
    assert [line for line in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def site(folder: Path, pages: Mapping[str, str]) -> None:
    (folder / "docs").mkdir(parents=True)
    (folder / "mkdocs.yml").write_text("site_name: Tea\nsite_url: https://tea.example.com/\n")
    for name, text in {"index.md": "# Tea\n\nAll about tea.\n", **pages}.items():
        (folder / "docs" / name).write_text(text)
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))


def measured(root: Path) -> int:
    """Run the steps as GitHub does, but for the installation; return how the last one ended."""
    environment = clean({"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"})
    code = 0
    for step in STEPS:
        if "run" in step and step["name"] != "Install":
            command = ["bash", "--noprofile", "--norc", "-e", "-c", step["run"]]
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
            code = 0 if step.get("continue-on-error") else done.returncode
            assert code in (0, 3), done.stderr
    return code


@pytest.mark.slow
def test_a_change_that_does_no_harm_passes(tmp_path: Path) -> None:
    site(tmp_path / "base", {"green.md": GREEN, "clean.md": LIME})
    site(tmp_path / "head", {"green.md": GREEN + "\nNever boil it.\n", "clean.md": LIME})
    assert measured(tmp_path) == 0
    run = json.loads((tmp_path / "head.json").read_bytes())
    assert (run["comparison"]["shared"], [bar["met"] for bar in run["bars"]]) == (3, [True, True, True])
    assert "Against the earlier run" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_a_change_that_loses_answers_fails_and_is_reported(tmp_path: Path) -> None:
    site(tmp_path / "base", {"green.md": GREEN, "clean.md": LIME})
    site(tmp_path / "head", {"green.md": GREEN})
    assert measured(tmp_path) == 3
    run = json.loads((tmp_path / "head.json").read_bytes())
    assert ("lime", False) in [(move["id"], move["better"]) for move in run["comparison"]["moves"]]
    assert (tmp_path / "report.html").exists()
    uploaded = next(step for step in STEPS if "upload-artifact" in step.get("uses", ""))
    assert uploaded["if"] == "${{ !cancelled() }}"
    assert all((tmp_path / name).exists() for name in uploaded["with"]["path"].split())


@pytest.mark.slow
def test_a_base_that_does_not_build_is_no_reason_to_measure_nothing(tmp_path: Path) -> None:
    site(tmp_path / "head", {"green.md": GREEN, "clean.md": LIME})
    assert measured(tmp_path) == 0
    assert "comparison" not in json.loads((tmp_path / "head.json").read_bytes())
