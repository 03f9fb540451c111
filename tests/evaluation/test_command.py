"""`chapterverse eval` as a command: output, files, exit codes, and one sentence for each mistake."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chapterverse_api.ext.evaluation.metrics import METRICS
from cli.shell import BASE, QUESTION, Shell, clean, command, typed

GREEN = {"id": "green", "question": QUESTION, "expected": [f"{BASE}brew/#green-tea"]}
LIME = {"id": "lime", "question": "What dissolves lime?", "expected": ["clean/"]}
CUP = {"id": "cup", "question": "Who won the world cup?", "answerable": False}
ROWS = (GREEN, LIME, CUP)


@pytest.fixture(scope="module")
def tea(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A site that is indexed, with questions about it."""
    shell = Shell.with_index(tmp_path_factory.mktemp("tea"))
    written(shell, *ROWS)
    return shell


def written(shell: Shell, *rows: Mapping[str, Any] | str, name: str = "q.jsonl") -> str:
    """Write a file of questions and return its name."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (shell.root / name).write_text("\n".join(lines), encoding="utf-8")
    return name


def test_the_figures_stand_in_text(tea: Shell) -> None:
    done = tea.run("eval", "q.jsonl")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["section", "page", "evidence", "outcome", "id", "question"]
    assert re.fullmatch(r" +1 +1 +[01]\.\d\d answered    green  How many degrees are enough for green tea\?", lines[1])
    assert re.fullmatch(r" +– +– +[01]\.\d\d refused     cup    Who won the world cup\?", lines[3])
    assert lines[5].startswith("tea-example-com-docs, generation 1: 2 answerable and 1 unanswerable questions, ")
    assert "recall@5     1.000   1.000" in lines
    assert lines[-2:] == ["refused      1.000   1 of 1 unanswerable", "answered     1.000   2 of 2 answerable"]


def test_the_run_as_json(tea: Shell) -> None:
    document = tea.json("eval", "q.jsonl", "--min", "recall@5=0.9")
    assert document["format"] == 1
    assert tuple(document["metrics"]) == METRICS
    assert set(document["metrics"].values()) == {1}
    assert document["counts"]["questions"] == 3
    assert document["index"]["generation"] == 1
    assert document["bars"] == [{"name": "recall@5", "least": 0.9, "value": 1.0, "met": True}]
    assert "comparison" not in document
    green, lime, cup = document["rows"]
    assert (green["expected"], green["anchor_ranks"], green["page_ranks"]) == (GREEN["expected"], [1], [1])
    assert green["results"][0] == {
        "rank": 1, "score": green["evidence"], "url": GREEN["expected"][0], "chapter": "Brewing",
        "section": "Green tea", "match": "anchor",
    }  # fmt: skip
    assert (lime["chapter"], cup["refused"], cup["anchor_ranks"]) == ("Cleaning", True, [])


def test_two_runs_differ_in_time_alone(tea: Shell) -> None:
    def timeless(document: Any) -> Any:
        for place in (document, *document["rows"]):
            del place["seconds"]
        return {**document, "created_at": ""}

    assert timeless(tea.json("eval", "q.jsonl")) == timeless(tea.json("eval", "q.jsonl"))


def test_what_is_written_is_what_is_printed(tea: Shell, tmp_path: Path) -> None:
    run, report = tmp_path / "run.json", tmp_path / "report.html"
    done = tea.run("eval", "q.jsonl", "--json", "--run", str(run), "--report", str(report))
    assert run.read_text("utf-8") == done.stdout
    page = ElementTree.fromstring(report.read_text("utf-8"))
    shown = [text for element in page.iter("bdi") if (text := element.text)]
    assert {row["question"] for row in ROWS} <= set(shown)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["report.html", "run.json"]


@pytest.mark.parametrize(
    "bars",
    [
        ["--min", "recall@5=1", "--min", "nDCG@10=1", "--min", "page.mrr=1", "--min", "refused=1"],
        ["--min", "recall@5=1", "ndcg@10=1", "hit@1=1"],
    ],
)
def test_bars_that_are_met(tea: Shell, bars: list[str]) -> None:
    assert tea.run("eval", "q.jsonl", *bars).stderr == ""


def test_a_bar_that_is_missed_is_a_sentence_and_exit_code_3(tea: Shell, tmp_path: Path) -> None:
    file = written(tea, GREEN, {**LIME, "expected": ["brew/#green-tea"]}, name="missed.jsonl")
    run = tmp_path / "run.json"
    bars = ("--min", "hit@5=0.8", "--min", "page.mrr=0.4", "--min", "MRR=0.9", "--min", "refused=0.5")
    done = tea.run("eval", file, *bars, "--json", "--run", str(run), code=3)
    assert done.stderr.splitlines() == [
        "Error: hit@5 is 0.5, below its bar of 0.8.",
        "Error: mrr is 0.5, below its bar of 0.9.",
        "Error: refused has a bar of 0.5, and no question to measure it by.",
    ]
    # The run is there all the same: it is wanted most when something is wrong.
    document = json.loads(done.stdout)
    assert json.loads(run.read_text("utf-8")) == document
    assert [bar["met"] for bar in document["bars"]] == [False, True, False, False]


def test_a_place_that_is_gone_is_a_warning_that_names_the_row(tea: Shell) -> None:
    file = written(tea, GREEN, "", {**LIME, "expected": ["clean/", "cleaning/#lime"]}, name="gone.jsonl")
    done = tea.run("eval", file, "--json")
    warning = "gone.jsonl, line 3: cleaning/#lime counts as missed, for the index holds no such page."
    assert done.stderr == f"Warning: {warning}\n"
    document = json.loads(done.stdout)
    assert document["warnings"] == [warning]
    assert (document["rows"][1]["missing"], document["metrics"]["recall@10"]) == (["cleaning/#lime"], 0.75)


def test_a_comparison_with_an_earlier_run(tea: Shell, tmp_path: Path) -> None:
    before = str(tmp_path / "before.json")
    tea.run("eval", written(tea, {**GREEN, "expected": ["clean/"]}, CUP, name="before.jsonl"), "--run", before)
    report = tmp_path / "report.html"
    document = tea.json("eval", "q.jsonl", "--compare", before, "--report", str(report))
    comparison = document["comparison"]
    assert (comparison["shared"], comparison["only_now"], comparison["only_before"]) == (2, ["lime"], [])
    mrr = next(change for change in comparison["changes"] if change["name"] == "mrr")
    assert (mrr["before"], mrr["now"], mrr["verdict"], mrr["questions"]) == (0, 1, "better", 1)
    assert (mrr["low"], mrr["high"]) == (1, 1)
    assert comparison["moves"][0]["id"] == "green"
    said = tea.run("eval", "q.jsonl", "--compare", before).stdout
    assert "Against the earlier run, over the 2 questions of both:" in said
    assert "1 only in this run, or in other words there: lime" in said
    assert "Against the earlier run" in report.read_text("utf-8")
    # What --json prints serves as well, and may be replaced by the run that was compared with it.
    printed = tmp_path / "printed.json"
    printed.write_text(json.dumps(document))
    again = tea.json("eval", "q.jsonl", "--compare", str(printed), "--run", str(printed))["comparison"]
    assert (again["shared"], {change["verdict"] for change in again["changes"]}) == (3, {"same"})
    assert json.loads(printed.read_text())["comparison"] == again


def test_questions_written_for_the_published_address_measure_a_preview(tea: Shell) -> None:
    preview = "http://localhost:8765/"
    file = written(tea, {**GREEN, "expected": [f"{preview}brew/#green-tea"]}, name="preview.jsonl")
    assert tea.json("eval", file, "--base-url", preview)["metrics"]["mrr"] == 1
    assert tea.json("eval", file, CHAPTERVERSE_BASE_URL=preview)["metrics"]["mrr"] == 1
    assert tea.json("eval", file)["metrics"]["mrr"] == 0


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("{oops", "this is not JSON."),
        ({"id": "b"}, 'a row needs "id" and "question", both strings.'),
        ({"id": "b", "question": "Why?"}, 'a row needs an address in "expected", or "answerable": false.'),
        ({**LIME, "expected": []}, 'a row needs an address in "expected", or "answerable": false.'),
        ({**LIME, "expected": "clean/"}, '"expected" must be a list of addresses.'),
        ({**LIME, "expected": ["clean/", 7]}, '"expected" must be a list of addresses.'),
        ({**LIME, "expected": [" "]}, '"expected" must be a list of addresses.'),
        ({**LIME, "answerable": "no"}, '"answerable" must be true or false.'),
        ({**LIME, "answerable": False}, 'a row that is not answerable has nothing in "expected".'),
        ({**LIME, "id": "green"}, "the id 'green' is taken already, by bad.jsonl, line 1."),
        ({**LIME, "question": "\ud800"}, "this is not valid Unicode."),
        ({**LIME, "expected": ["\udfff"]}, "this is not valid Unicode."),
        ({**LIME, "question": "?!"}, "query must hold at least one letter or digit."),
        ({**LIME, "history": 7}, "conversation_history must be a list."),
    ],
)
def test_a_wrong_row_is_one_sentence_with_its_line(tea: Shell, row: Any, sentence: str) -> None:
    written(tea, GREEN, row, name="bad.jsonl")
    assert tea.refused("eval", "bad.jsonl") == f"bad.jsonl, line 2: {sentence}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.jsonl"], "none.jsonl can't be read (No such file or directory): name a file of questions."),
        (["empty.jsonl"], "empty.jsonl holds no question."),
        (
            ["q.jsonl", "--report", "no/report.html"],
            "no/report.html can't be written: name a file in a folder that exists.",
        ),
        (["q.jsonl", "--run", "site"], "site can't be written: name a file in a folder that exists."),
        (["q.jsonl", "--compare", "none.json"], "none.json: No such file or directory."),
        (["q.jsonl", "--compare", "q.jsonl"], "q.jsonl is no run: name a file that `chapterverse eval --run` wrote."),
        (
            ["q.jsonl", "--compare", "other.json"],
            "other.json holds none of these questions, so there is nothing to compare.",
        ),
        (["q.jsonl", "--store", "edge:none"], "There is no index yet"),
        (["q.jsonl", "--store", "nowhere"], "CHAPTERVERSE_STORE is 'nowhere'"),
        (["q.jsonl", "--site", "other"], "The store holds nothing for that site and version, only"),
        (["q.jsonl", "--embedder", "cohere"], "COHERE_API_KEY"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(tea: Shell, arguments: list[str], sentence: str) -> None:
    written(tea, "", name="empty.jsonl")
    tea.run("eval", written(tea, {**LIME, "id": "other"}, name="other.jsonl"), "--run", "other.json")
    assert sentence in tea.refused("eval", *arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "QUESTIONS"),
        (["q.jsonl", "--min", "recall"], "A --min needs the form NAME=VALUE, such as recall@5=0.8."),
        (
            ["q.jsonl", "--min", "f1=1"],
            "There is no figure 'f1'; there are recall@3, recall@5, recall@10, hit@1, hit@5, mrr,",
        ),
        (["q.jsonl", "--min", "mrr=2"], "The bar of mrr must be a number from 0 to 1."),
        (["q.jsonl", "other.jsonl"], "There is one file of QUESTIONS; a bar is set by --min NAME=VALUE."),
        (["q.jsonl", "--run", "q.jsonl"], "QUESTIONS, --report and --run must be different files."),
        (["q.jsonl", "--run", "a", "--report", "./a"], "QUESTIONS, --report and --run must be different files."),
        (["q.jsonl", "--min", "citation_validity=1"], "citation_validity is a figure of answers: add --answers."),
    ],
)
def test_what_was_not_understood_is_a_matter_of_usage(tea: Shell, arguments: list[str], sentence: str) -> None:
    before = (tea.root / "q.jsonl").read_bytes()
    assert sentence in tea.refused("eval", *arguments, code=2)
    assert (tea.root / "q.jsonl").read_bytes() == before


def test_help_teaches(tea: Shell) -> None:
    text = tea.run("eval", "--help").stdout
    for option in (
        "--min",
        "--compare",
        "--report",
        "--run",
        "--base-url",
        "--json",
        "--store",
        "--site",
        "--docs-version",
        "--answers",
    ):
        assert re.search(rf"^  {option}\b[^\n]*\s+[A-Z]\w", text, re.MULTILINE), option
    rows = [json.loads(line) for line in text.splitlines() if line.startswith('  {"')]
    # What it shows as rows are rows.
    written(tea, *rows, name="taught.jsonl")
    counts = tea.json("eval", "taught.jsonl")["counts"]
    assert (counts["answerable"], counts["unanswerable"]) == (2, 1)
    for name in ("recall@3", "hit@1", "mrr", "ndcg@10", "page.recall@5", "refused", "answered", "citation_validity"):
        assert re.search(rf"^  {name} .*[a-z]", text, re.MULTILINE), name


def test_a_terminal_sees_how_far_it_is(tea: Shell) -> None:
    shown = typed(tea, "eval", "q.jsonl")
    assert "Asking questions" in shown
    assert "3/3" in shown


def process(shell: Shell, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("eval", *arguments), cwd=shell.root, env=clean(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_a_report_into_a_pipe(tea: Shell, tmp_path: Path) -> None:
    pipe, run = tmp_path / "pipe", tmp_path / "run.json"
    os.mkfifo(pipe)
    running = process(tea, "q.jsonl", "--report", str(pipe), "--run", str(run))
    assert pipe.read_text("utf-8").rstrip().endswith("</html>")
    assert running.wait(30) == 0
    assert pipe.is_fifo()


def test_what_is_killed_leaves_no_torn_file(tea: Shell, tmp_path: Path) -> None:
    pipe, run = tmp_path / "pipe", tmp_path / "run.json"
    os.mkfifo(pipe)
    running = process(tea, "q.jsonl", "--report", str(pipe), "--run", str(run))
    # The run is written before the report, which waits for whoever reads the pipe.
    while not run.exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait(30)
    assert json.loads(run.read_bytes())["counts"]["questions"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2])
def test_what_is_killed_at_any_time_leaves_the_old_or_the_new(tea: Shell, tmp_path: Path, delay: float) -> None:
    run = tmp_path / "run.json"
    run.write_text('{"old": true}')
    running = process(tea, "q.jsonl", "--run", str(run))
    time.sleep(delay)
    running.send_signal(signal.SIGKILL)
    running.wait(30)
    document = json.loads(run.read_bytes())
    assert document == {"old": True} or document["counts"]["questions"] == 3
