"""What a build keeps for the next one: right or gone, and never a reason to fail."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from chapterverse.build_cache import BuildCache
from chapterverse.model import Scope

KILLED = """
import os, sys
from pathlib import Path
from chapterverse.build_cache import BuildCache
cache = BuildCache(Path(sys.argv[1]), "docs")
cache.read("old")
cache.write("new", "half")
os.kill(os.getpid(), 9)
"""


def build(file: Path, texts: dict[str, str], scope: str = "docs") -> dict[str, str | None]:
    """Run a build that needs these texts, and return what the one before has kept of them."""
    cache = BuildCache(file, scope)
    found = {key: cache.read(key) for key in texts}
    for key, text in texts.items():
        if found[key] is None:
            cache.write(key, text)
    cache.finish()
    return found


def build_in(folder: Path, scope: Scope) -> str | None:
    cache = BuildCache.open(folder, scope, make=True)
    found = cache.read("a")
    cache.write("a", "x")
    cache.finish()
    return found


def test_a_build_gets_what_the_last_one_kept_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "folder/builds.sqlite"
    assert build(file, {"a": "1", "b": "é"}) == {"a": None, "b": None}
    assert build(file, {"b": ""}) == {"b": "é"}
    assert build(file, {"a": "2", "b": ""}) == {"a": None, "b": "é"}


def test_sites_and_versions_share_a_file_and_no_text(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": "1"}, "docs")
    assert build(tmp_path / "f", {"a": "2"}, "docs 1.0") == {"a": None}
    assert build(tmp_path / "f", {"a": ""}, "docs") == {"a": "1"}
    folder = tmp_path / "cache"
    BuildCache.open(folder, Scope("docs"), make=False).write("a", "x")
    assert not folder.exists()
    for version in ("", "1.0"):
        assert build_in(folder, Scope("docs", version)) is None
    assert build_in(folder, Scope("docs", "1.0")) == "x"


def test_another_version_of_the_code_reads_nothing(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": "1"})
    with closing(sqlite3.connect(tmp_path / "f")) as db, db:
        db.execute("UPDATE kept SET key = '0.0.1 ' || key")
    assert build(tmp_path / "f", {"a": "2"}) == {"a": None}
    with closing(sqlite3.connect(tmp_path / "f")) as db:
        assert db.execute("SELECT text FROM kept").fetchall() == [("2",)]


@pytest.mark.parametrize("content", [b"", b"no database" * 99, "half"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, content: bytes | str) -> None:
    file = tmp_path / "f"
    build(file, {str(n): "text" * 500 for n in range(50)})
    file.write_bytes(content if isinstance(content, bytes) else file.read_bytes()[:9000] + b"\xff" * 9000)
    for _ in range(3):
        found = build(file, {"a": "1"})
    assert found == {"a": "1"}


def test_a_build_that_is_killed_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    build(tmp_path / "f", {"old": "1"})
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "f"])
    assert done.returncode == -9
    assert build(tmp_path / "f", {"old": "", "new": "2"}) == {"old": "1", "new": None}


def test_two_builds_at_once_disturb_neither(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": "1"})
    first, second = BuildCache(tmp_path / "f", "docs"), BuildCache(tmp_path / "f", "docs")
    assert (first.read("a"), second.read("a")) == ("1", "1")
    first.write("b", "2")
    second.write("b", "3")
    assert second.read("a") is None, "it waited once, and goes on without the file"
    second.finish()
    first.finish()
    assert build(tmp_path / "f", {"a": "", "b": ""}) == {"a": "1", "b": "2"}


def test_a_place_that_can_not_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    for path in (tmp_path / "folder/f", tmp_path, None):
        for _ in range(2):
            assert build(path, {"a": "1", "\ud800": "\udfff"}) == {"a": None, "\ud800": None}  # type: ignore[arg-type]
