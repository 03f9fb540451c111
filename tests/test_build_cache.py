"""What a build keeps for later ones: right or gone, and never a reason to fail."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from chapterverse.build_cache import BuildCache

KILLED = """
import os, sys
from pathlib import Path
from chapterverse.build_cache import BuildCache
cache = BuildCache(Path(sys.argv[1]))
cache.read("old", str)
for number in range(1000):
    cache.write(f"new {number}", "text")
os.kill(os.getpid(), 9)
"""


def build(file: Path | None, texts: dict[str, str]) -> dict[str, str | None]:
    """Run a build that needs these texts, and return what those before have kept of them."""
    cache = BuildCache(file)
    found = {key: cache.read(key, str) for key in texts}
    for key, text in texts.items():
        if found[key] is None:
            cache.write(key, text)
    cache.finish()
    return found


def change(file: Path, statement: str) -> int:
    """Run a statement on the file, and return how many texts it holds then."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(statement)
        return int(db.execute("SELECT count(*) FROM kept_1").fetchone()[0])


def test_a_build_gets_what_an_earlier_one_kept(tmp_path: Path) -> None:
    file = tmp_path / "folder/builds.sqlite"
    assert build(file, {"a": "1", "b": "é"}) == {"a": None, "b": None}
    assert build(file, {"b": ""}) == {"b": "é"}
    assert build(file, {"a": "2", "b": ""}) == {"a": "1", "b": "é"}


def test_a_folder_is_made_only_where_that_is_allowed(tmp_path: Path) -> None:
    cache = BuildCache.open(tmp_path / "cache", make=False)
    cache.write("a", "x")
    cache.finish()
    assert not (tmp_path / "cache").exists()
    for found in (None, "x"):
        cache = BuildCache.open(tmp_path / "cache", make=True)
        assert cache.read("a", str) == found
        cache.write("a", "x")
        cache.finish()


def test_what_no_build_reads_is_removed_after_a_month(tmp_path: Path) -> None:
    file = tmp_path / "f"
    build(file, {"a": "1", "b": "2"})
    change(file, "UPDATE kept_1 SET day = day - 31")
    assert build(file, {"a": ""}) == {"a": "1"}
    assert build(file, {"a": "", "b": "3"}) == {"a": "1", "b": None}
    change(file, "UPDATE kept_1 SET day = day - 29")
    assert build(file, {"a": ""}) == {"a": "1"}
    assert build(file, {"b": ""}) == {"b": "3"}


def test_another_version_of_the_code_reads_nothing(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": "1"})
    change(tmp_path / "f", "UPDATE kept_1 SET key = '0.0.1 ' || key")
    assert build(tmp_path / "f", {"a": "2"}) == {"a": None}


@pytest.mark.parametrize("content", [b"", b"no database" * 99, "half"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, content: bytes | str) -> None:
    file = tmp_path / "f"
    build(file, {str(n): "text" * 500 for n in range(50)})
    file.write_bytes(content if isinstance(content, bytes) else file.read_bytes()[:9000] + b"\xff" * 9000)
    for _ in range(3):
        found = build(file, {"a": "1"})
    assert found == {"a": "1"}


def test_a_text_that_can_not_be_read_is_made_anew(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": '{"b": 1}'})
    change(tmp_path / "f", "UPDATE kept_1 SET text = substr(text, 1, 4)")
    for found in (None, {"b": 1}):
        cache = BuildCache(tmp_path / "f")
        assert cache.read("a", json.loads) == found
        cache.write("a", '{"b": 1}')
        cache.finish()


def test_a_build_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    build(tmp_path / "f", {"old": "1"})
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "f"])
    assert done.returncode == -9
    assert build(tmp_path / "f", {"old": "", "new 999": ""}) == {"old": "1", "new 999": None}
    assert set(build(tmp_path / "f", {"new 0": "text"}).values()) <= {None, "text"}


def test_two_builds_at_once_disturb_neither(tmp_path: Path) -> None:
    first, second = BuildCache(tmp_path / "f"), BuildCache(tmp_path / "f")
    for cache, name in ((first, "a"), (second, "b")) * 2:
        for number in range(200):
            assert cache.read(f"{name}{number}", str) in (None, "text")
            cache.write(f"{name}{number}", "text")
    second.finish()
    first.finish()
    assert build(tmp_path / "f", {"a199": "", "b199": ""}) == {"a199": "text", "b199": "text"}


def test_a_lock_of_another_build_is_waited_for_once(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": "1"})
    with closing(sqlite3.connect(tmp_path / "f", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert build(tmp_path / "f", {"a": "2", "b": "3"}) == {"a": None, "b": None}
    assert build(tmp_path / "f", {"a": "", "b": ""}) == {"a": "1", "b": None}


def test_another_thread_costs_the_texts_and_not_the_file(tmp_path: Path) -> None:
    build(tmp_path / "f", {"a": "1"})
    cache = BuildCache(tmp_path / "f")
    assert cache.read("a", str) == "1"
    thread = threading.Thread(target=cache.read, args=("a", str))
    thread.start()
    thread.join()
    cache.finish()
    assert build(tmp_path / "f", {"a": ""}) == {"a": "1"}


def test_a_place_that_can_not_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    for path in (tmp_path / "folder/f", tmp_path, None):
        for _ in range(2):
            assert build(path, {"a": "1", "\ud800": "\udfff"}) == {"a": None, "\ud800": None}
