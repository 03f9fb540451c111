"""Builds of MkDocs, killed at moments spread over their whole time."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from chapterverse.model import Chunk
from faults.nursery import Nursery
from projects import Project

POINTS = 32

BEFORE = {f"docs/{name}.md": f"# {name}\n\nThe {name} is fired twice.\n" for name in ("index", "bowl", "cup", "jug")}
AFTER = {**BEFORE, "docs/cup.md": "# cup\n\nThe cup is fired thrice.\n", "docs/kiln.md": "# kiln\n\nIt is hot.\n"}
REMOVED = "docs/jug.md"
del AFTER[REMOVED]


def build(root: Path) -> float:
    """Build a project and return how many seconds it took."""
    from mkdocs.__main__ import cli

    os.chdir(root)
    begin = time.monotonic()
    cli.main(["build", "--quiet"], standalone_mode=False)
    return time.monotonic() - begin


def found(root: Path) -> tuple[list[Chunk], Mapping[str, str]]:
    """Return what a build left: the chunks of the index, without their times, and the files for agents."""
    site = root / "site"
    files = {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.txt")}
    chunks = [replace(chunk, created_at="", timestamp="") for chunk in Project(root).chunks()]
    return sorted(chunks, key=lambda chunk: chunk.chunk_id), files


def test_a_killed_build_leaves_a_whole_index_and_the_next_one_ends_as_a_clean_one(tmp_path: Path) -> None:
    built, root = tmp_path / "built", tmp_path / "project"
    config = {
        "site_name": "Kilns",
        "site_url": "https://docs.example.com/",
        "plugins": [{"chapterverse": {"endpoint": "/"}}],
    }
    Project(built).write({**BEFORE, "mkdocs.yml": yaml.safe_dump(config)})
    with Nursery(NO_MKDOCS_2_WARNING="1", DISABLE_MKDOCS_2_WARNING="true") as nursery:
        nursery.run(build, built)
        shutil.copytree(built, root)
        old = found(built)
        Project(root).write(AFTER)
        (root / REMOVED).unlink()
        seconds = nursery.run(build, root)
        new = found(root)
        assert {chunk.source_file_path for chunk in new[0]} == {path.removeprefix("docs/") for path in AFTER}
        killed = 0
        for point in range(POINTS):
            shutil.rmtree(root)
            shutil.copytree(built, root)
            Project(root).write(AFTER)
            (root / REMOVED).unlink()
            child = nursery.start(build, root)
            time.sleep(seconds * point / POINTS)
            child.kill()
            killed += child.wait().killed
            assert found(root)[0] in (old[0], new[0]), f"killed at {point} of {POINTS}"
            nursery.run(build, root)
            assert found(root) == new, f"built after a kill at {point} of {POINTS}"
    assert killed > POINTS // 2
