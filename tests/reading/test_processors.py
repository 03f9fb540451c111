"""Two threads give the same answers as one, and another processor nearly: one without AVX-512, which this one plays.

Sums of whole numbers are equal. What lies between them is of floating point, and is rounded to other whole numbers now
and then: of 54 answers about four sites, one quotes other lines.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chapterverse.cli import main

pytest.importorskip("onnxruntime")

TESTS = Path(__file__).parents[1]
FOLDER = TESTS.parent / "reading/chapterverse_reading"
#: Three sites with their questions: our own ones, and the headings of two others.
OWN = [json.loads(line)["question"] for line in (TESTS / "questions/questions.jsonl").read_text("utf-8").splitlines()]
SITES = {
    "own": (TESTS / "questions/site", OWN[::5]),
    "material": (TESTS / "sites/mkdocs-material", ["install", "what is a tab", "tables", "how do I write a note"]),
    "docusaurus": (TESTS / "sites/docusaurus", ["getting started", "tabs", "code blocks", "what is an admonition"]),
}
_ANSWER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from chapterverse.settings import Settings
from chapterverse_api.commands import ServiceSession
from chapterverse_api.search import reading
# However busy the machine is, everything is read.
reading.MAX_READING_SECONDS = 600.0
store, model, threads, *questions = sys.argv[1:]
service = ServiceSession.open(Settings(store=store, reading_model=model))
with ThreadPoolExecutor(int(threads)) as pool:
    for answer in pool.map(lambda question: service.answer(query=question), questions):
        kept = {name: answer[name] for name in ("response", "status", "sources_cited", "partial_reason")}
        print(json.dumps([*kept.values(), round(answer["grounding_confidence"], 1)]))
"""


def answer(store: str, questions: list[str], threads: int = 1, **environment: str) -> list[str]:
    command = [sys.executable, "-c", _ANSWER, store, str(FOLDER), str(threads), *questions]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that hides AVX-512 from the program that loads it first."""
    flags = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    compiler = shutil.which("cc")
    if platform.machine() != "x86_64" or "avx512f" not in flags or "cpuid_fault" not in flags or not compiler:
        pytest.skip("needs a C compiler, and a processor with AVX-512 and faults of CPUID under Linux")
    library = tmp_path_factory.mktemp("older") / "older.so"
    source = Path(__file__).with_name("older_processor.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    shown = "from numpy._core._multiarray_umath import __cpu_features__ as f; print(f['AVX2'], f['AVX512F'])"
    told = subprocess.run(
        [sys.executable, "-c", shown], env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True, text=True
    )
    if told.stdout.split() != ["True", "False"]:
        pytest.skip("this system does not let a program answer CPUID")
    return str(library)


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str], list[str]]:
    """A site's index, the questions, and the answers of one thread."""
    folder, questions = SITES[request.param]
    store = f"edge:{tmp_path_factory.mktemp('index')}"
    with pytest.raises(SystemExit) as end:
        main(["index", str(folder), "--base-url", "https://docs.chapterverse.example/", "--store", store])
    assert not end.value.code
    return store, questions, answer(store, questions)


def test_two_threads_answer_as_one_does(site: tuple[str, list[str], list[str]]) -> None:
    store, questions, alone = site
    assert len(alone) == len(questions)
    assert answer(store, questions, threads=2) == alone


def test_an_older_processor_answers_alike(site: tuple[str, list[str], list[str]], older: str) -> None:
    store, questions, here = site
    there = answer(store, questions, LD_PRELOAD=older)
    assert len(here) == len(there) == len(questions)
    assert sum(a != b for a, b in zip(here, there, strict=True)) <= len(questions) // 10
