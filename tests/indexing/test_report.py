"""The report of a run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from chapterverse.indexing.diff import Diff, FileDiff
from chapterverse.indexing.report import Report
from chapterverse.indexing.sync import index
from chapterverse.model import Head
from fakes.docs import SCOPE, prose
from indexing.site import Site, bare


def test_a_report_is_the_document_of_the_contract(site: Site) -> None:
    site.index()
    site.put("a.md", prose(("a", 1)), "Other words.")
    site.put("moved.md", prose(("b", 1)), prose(("b", 2)))
    site.put("d.md", "New words.")
    del site.pages["b.md"]
    site.broken.add("c.md")
    document = json.loads(json.dumps(site.index().to_json()))
    seconds = document.pop("seconds")
    assert 0 < seconds < 60
    assert document == {
        "site": "docs",
        "version": "",
        "generation": 2,
        "pages": {"seen": 4, "new": 2, "changed": 1, "unchanged": 0, "removed": 1, "skipped": 1},
        "chunks": {"total": 7, "new": 2, "kept": 3, "moved": 2, "removed": 1},
        "embedded": 2,
        "warnings": ["c.md is not a text file."],
        "left_out": {"c.md": "c.md is not a text file."},
    }


def test_a_report_reads_as_one_line(site: Site) -> None:
    line = str(replace(site.index(), seconds=1.234))
    assert line == (
        "3 pages (3 new, 0 changed, 0 removed), 6 chunks (6 new, 0 kept, 0 moved, 0 removed), 6 embedded, 1.2 s"
    )


def test_earlier_warnings_stand_first_and_count_no_page() -> None:
    report = Report(SCOPE, 1, FileDiff(), Diff(), 0, left_out={"b.md": "late"}, warnings=("late",))
    report = report.after(["early", "of no page"], {"a.md": "asks not to be indexed"})
    assert report.warnings == ("early", "of no page", "late")
    document = report.to_json()
    assert document["pages"]["skipped"] == document["pages"]["seen"] == 2
    assert document["left_out"] == {"a.md": "asks not to be indexed", "b.md": "late"}
    # What a warning says is not said twice.
    assert report.left_out_lines() == ["Left out: a.md (asks not to be indexed)"]


def test_of_many_sources_left_out_the_first_are_named() -> None:
    report = Report(SCOPE, 1, FileDiff(), Diff(), 0, left_out={f"{n:03}.md": "excluded" for n in range(123)})
    lines = report.left_out_lines()
    assert (len(lines), lines[-1]) == (21, "Left out: 103 more; --json names them all")


def test_progress_is_told_with_counts(site: Site) -> None:
    told: list[tuple[str, int, int]] = []
    index(site.sources(), site.target, lambda *stage: told.append(stage))
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["Reading pages", "Embedding chunks", "Writing chunks"]
    for stage in stages:
        steps = [(done, total) for name, done, total in told if name == stage]
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1] > 0
        assert steps[0] == (0, steps[-1][1])


def test_a_run_that_is_interrupted_leaves_the_old_index(site: Site) -> None:
    site.index()
    before = bare(site.stored().values())
    site.put("a.md", "Other words.")

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "Writing chunks" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(site.sources(), site.target, interrupt)
    assert bare(site.stored().values()) == before
    assert not site.store.is_publishing(SCOPE)
    assert site.index().embedded == 1


def test_importing_sync_loads_nothing_that_only_some_runs_need() -> None:
    program = """
import sys, chapterverse.indexing.sync, chapterverse.progress
heavy = {"rich", "typer", "tiktoken", "qdrant_edge", "snowballstemmer", "sqlite3", "pydantic", "httpx", "markdown_it"}
print(sorted(heavy & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_head_says_all_that_readers_need(site: Site) -> None:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    site.index()
    head = site.store.snapshot(SCOPE).head
    assert isinstance(head, Head)
    assert (head.site, head.version, head.generation, head.pages, head.chunks) == ("docs", "", 1, 3, 6)
    assert head.pipeline == site.target.pipeline
    assert head.published_at >= started
    assert {c.timestamp for c in site.stored().values()} == {head.published_at}
    features = {"coverage", "strength", "length", "familiarity", "names", "title", "nearness"}
    assert head.calibration.keys() == {"bias", *features, "floor", "questions"}
    assert head.calibration["questions"] == 0
