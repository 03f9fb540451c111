"""`benchmarks/compare.py`: a state equals itself, and a planted change is found where it was planted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "compare.py"

PAGE = "# Kettle\n\n## Descale it\n\nFill it with vinegar and wait for an hour.\n\n## Warm it\n\nPress the button.\n"
QUESTIONS = ("how do I descale the kettle", "who won the cup in 1966")


@pytest.fixture
def same(tmp_path: Path) -> Path:
    """A checkout that runs the tested code."""
    (tmp_path / "same" / ".venv").mkdir(parents=True)
    (tmp_path / "same" / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return tmp_path / "same"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A checkout whose service spells one status otherwise."""
    shutil.copytree(ROOT / "lambda", tmp_path / "changed" / "lambda", ignore=shutil.ignore_patterns("__pycache__"))
    for file in (tmp_path / "changed").rglob("*.py"):
        file.write_text(file.read_text("utf-8").replace('"not_in_docs"', '"not_here"'), "utf-8")
    program = tmp_path / "changed" / ".venv" / "bin" / "chapterverse"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(tmp_path / 'changed' / 'lambda')!r})\n"
        "from chapterverse.cli import main\nmain()\n"
    )
    program.chmod(0o755)
    return tmp_path / "changed"


@pytest.fixture
def docs(tmp_path: Path) -> list[str]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "kettle.md").write_text(PAGE, "utf-8")
    rows = [json.dumps({"id": f"q{n}", "question": text, "history": []}) for n, text in enumerate(QUESTIONS)]
    (tmp_path / "questions.jsonl").write_text("\n".join(rows), "utf-8")
    return ["--source", str(tmp_path / "docs"), str(tmp_path / "questions.jsonl")]


def compare(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout or done.stderr


@pytest.mark.slow
def test_a_planted_change_is_named_and_nothing_else(same: Path, changed: Path, docs: list[str]) -> None:
    saved = same / "saved.json.gz"
    assert compare(same, *docs, "--runs", "quotes", "--save", saved)[0] == 0
    code, said = compare(saved, same)
    assert (code, said[:5]) == (0, "0 of "), said
    code, said = compare(saved, changed)
    assert code == 3
    place = f"source {docs[1]} | quotes | chat | q1 at /body/status\n  before: 'not_in_docs'\n  after:  'not_here'\n"
    assert place in said
    counts = [line for line in said.splitlines() if line.endswith(" differ")]
    # Also in the OpenAPI document and where a question was asked about a selection; nothing that was found or indexed.
    assert {line.split(" | ")[2].partition(":")[0] for line in counts} == {
        "ask", "chat", "routes", "signed history", "stream",
    }  # fmt: skip


def test_the_first_difference_is_shown_with_what_stands_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from compare import difference

    text = "x" * 500
    assert difference({"a": [1, {"b": text}]}, {"a": [1, {"b": text}]}) is None
    at, before, after = difference({"a": [1, {"b": text}]}, {"a": [1, {"b": text + "y"}]}) or ("", "", "")
    assert (at, before, after) == ("/a/1/b", repr("x" * 40), repr("x" * 40 + "y"))
    assert difference([1], [1, 2]) == ("/1", "'(nothing)'", "'2'")
    assert difference({"a": 1}, {"a": 1.0}) == ("/a", "'1'", "'1.0'")


def test_suggestions_that_a_busy_machine_cut_are_no_difference_and_lost_ones_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from compare import told

    def behavior(*follow_ups: list[str]) -> dict[str, object]:
        return {f"docs | quotes | chat | {n}": {"body": {"follow_ups": one}} for n, one in enumerate(follow_ups)}

    whole = behavior(*([["a", "b"]] * 20))
    assert told(whole, whole | behavior(["a"]), 3) == 0
    assert told(whole, whole | behavior(["b"]), 3) == 3
    assert told(whole, whole | behavior(*([[]] * 20)), 3) == 3
    assert "follow_ups: 40 of 40 differ" in capsys.readouterr().out


def test_what_cannot_be_compared_is_one_sentence(same: Path, docs: list[str]) -> None:
    assert compare("no-such-ref", *docs) == (1, "no-such-ref is no folder, no file and no git ref.\n")
    assert compare(same.parent, *docs)[1].endswith(
        "has no .venv with the command chapterverse: run `make lint` there.\n"
    )
    assert compare(same)[0] == 2
