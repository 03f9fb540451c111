from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from api.limits import processes
from api.limits.schedules import judge, share
from api.limits.test_contract import DAY, HOUR, MIDNIGHT, MINUTE
from chapterverse_api.ext.limiter.sqlite import SqliteLimiter
from chapterverse_api.limits import ACCOUNT_SECONDS, LimiterFault, RateWindow

WINDOWS = [RateWindow(10, MINUTE), RateWindow(60, HOUR), RateWindow(200, DAY)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.sqlite"


@pytest.fixture
def limiter(path: Path) -> Iterator[SqliteLimiter]:
    limiter = SqliteLimiter(path)
    yield limiter
    limiter.close()


def rows(path: Path) -> dict[str, int]:
    """Return how many rows each table holds."""
    db = sqlite3.connect(path)
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    counts = {name.removeprefix("limiter_"): db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    db.close()
    return counts


def test_processes_that_are_killed_overspend_nothing(tmp_path: Path) -> None:
    processes.run(tmp_path, share(6))
    for seed in share(6):
        limiter = SqliteLimiter(tmp_path / str(seed) / "limits.sqlite", lock_timeout=60.0)
        spent = limiter.spent_micros(processes.ACCOUNT)
        judge(processes.CAP, processes.entries(tmp_path / str(seed)), spent)
        assert limiter.reserve(processes.ACCOUNT, processes.CAP - spent, processes.CAP, MIDNIGHT)
        assert limiter.reserve(processes.ACCOUNT, 1, processes.CAP, MIDNIGHT) is None
        limiter.close()


def test_the_file_and_its_log_are_their_owners_alone(tmp_path: Path) -> None:
    limiter = SqliteLimiter(tmp_path / "new" / "limits.sqlite")
    assert limiter.spent_micros("docs") == 0
    assert limiter.reserve("docs", 1, 1, MIDNIGHT)
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "new").iterdir()}
    limiter.close()
    assert files.pop("limits.sqlite") == 0o600
    assert set(files) == {"limits.sqlite-wal", "limits.sqlite-shm"}
    assert set(files.values()) == {0o600}


def test_what_is_counted_outlasts_the_process(path: Path, limiter: SqliteLimiter) -> None:
    assert limiter.reserve("docs", 7, 10, MIDNIGHT)
    limiter.close()
    again = SqliteLimiter(path)
    assert again.spent_micros("docs") == 7
    again.close()


def test_old_rows_go_as_new_ones_come(path: Path, limiter: SqliteLimiter) -> None:
    for i in range(60):
        now = MIDNIGHT + i * DAY
        for client in "ab":
            assert limiter.admit(f"{client}{i}", WINDOWS, now) is None
        assert limiter.reserve(f"docs#{i}", 1, 1, now)
        assert limiter.use_token(f"t{i}", now + 300, now)
    assert {name: count for name, count in rows(path).items() if count > 24 + ACCOUNT_SECONDS // DAY} == {}
    assert limiter.spent_micros("docs#59") == 1


def test_a_row_is_not_old_before_its_time(limiter: SqliteLimiter) -> None:
    assert limiter.admit("a", [RateWindow(1, DAY)], MIDNIGHT) is None
    assert limiter.reserve("docs#1", 7, 10, MIDNIGHT)
    for i in range(20):
        assert limiter.admit(f"b{i}", [RateWindow(1, MINUTE)], MIDNIGHT + DAY - 1) is None
        assert limiter.reserve(f"docs#x{i}", 1, 10, MIDNIGHT + ACCOUNT_SECONDS - 1)
    assert limiter.admit("a", [RateWindow(1, DAY)], MIDNIGHT + DAY - 1) == 1.0
    assert limiter.spent_micros("docs#1") == 7


def test_a_row_is_old_at_the_moment_at_which_it_ends(path: Path, limiter: SqliteLimiter) -> None:
    counts = list[int]()
    for client, now in (("a", 0), ("b", 119), ("c", 120)):
        assert limiter.admit(client, [RateWindow(9, MINUTE)], MIDNIGHT + now) is None
        counts.append(rows(path)["requests"])
    assert counts == [1, 2, 2]
    for account, now in (("docs#1", 0), ("docs#2", ACCOUNT_SECONDS)):
        assert limiter.reserve(account, 7, 10, MIDNIGHT + now)
    assert (rows(path)["accounts"], rows(path)["reservations"]) == (1, 1)


def test_a_write_removes_eight_old_rows(path: Path, limiter: SqliteLimiter) -> None:
    for number in range(10):
        assert limiter.use_token(f"{number}", MIDNIGHT + 1, MIDNIGHT)
    assert limiter.use_token("new", MIDNIGHT + 9, MIDNIGHT + 1)
    assert rows(path)["tokens"] == 3


def test_a_reservation_alone_waits_for_the_disk(limiter: SqliteLimiter) -> None:
    said = list[str]()
    reserved = limiter.reserve("docs", 1, 9, MIDNIGHT)
    assert reserved
    assert limiter._db
    limiter._db.set_trace_callback(said.append)
    assert limiter.reserve("docs", 1, 9, MIDNIGHT)
    limiter.settle(reserved, 1)
    limiter.admit("a", WINDOWS, MIDNIGHT)
    limiter.use_token("t", MIDNIGHT + 1, MIDNIGHT)
    modes = [text.rpartition(" ")[2] for text in said if text.startswith("PRAGMA synchronous")]
    assert modes == ["FULL", "NORMAL", "NORMAL", "NORMAL"]


def test_the_threads_of_one_limiter_wait_for_each_other_and_are_told(path: Path) -> None:
    limiter = SqliteLimiter(path, lock_timeout=0.05)
    assert limiter.spent_micros("docs") == 0
    with limiter._lock, pytest.raises(LimiterFault) as caught:
        limiter.spent_micros("docs")
    assert str(caught.value) == f"Others are writing to the counters in {path}: wait for them."
    assert limiter.spent_micros("docs") == 0
    limiter.close()


def test_a_file_that_is_removed_meanwhile_is_made_anew(path: Path, limiter: SqliteLimiter) -> None:
    assert limiter.reserve("docs", 7, 10, MIDNIGHT)
    for file in path.parent.iterdir():
        file.unlink()
    other = SqliteLimiter(path)
    assert limiter.reserve("docs", 3, 10, MIDNIGHT)
    assert (limiter.spent_micros("docs"), other.spent_micros("docs")) == (3, 3)
    other.close()


def test_a_step_that_fails_in_between_leaves_nothing_locked(path: Path, limiter: SqliteLimiter) -> None:
    # No table can hold half of a surrogate pair.
    with pytest.raises(UnicodeEncodeError):
        limiter.spent_micros("\ud800")
    for each in (SqliteLimiter(path, lock_timeout=0.05), limiter):
        assert each.reserve("docs", 1, 10, MIDNIGHT)
        each.close()


def test_others_that_write_are_waited_for_and_then_told(path: Path) -> None:
    limiter = SqliteLimiter(path, lock_timeout=0.05)
    assert limiter.spent_micros("docs") == 0
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LimiterFault) as caught:
        limiter.reserve("docs", 1, 10, MIDNIGHT)
    assert str(caught.value) == f"Others are writing to the counters in {path}: wait for them."
    other.execute("ROLLBACK")
    other.close()
    assert limiter.reserve("docs", 1, 10, MIDNIGHT)
    limiter.close()


def test_another_process_that_makes_the_file_at_the_moment_is_waited_for_and_then_told(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE others (name TEXT)")
    other.execute("BEGIN IMMEDIATE")
    impatient, patient = SqliteLimiter(path, lock_timeout=0.05), SqliteLimiter(path, lock_timeout=60.0)
    with pytest.raises(LimiterFault, match="Others are writing to the counters"):
        impatient.reserve("docs", 1, 10, MIDNIGHT)
    with ThreadPoolExecutor(1) as pool:
        reserved = pool.submit(patient.reserve, "docs", 1, 10, MIDNIGHT)
        assert not wait([reserved], timeout=0.2).done
        other.execute("COMMIT")
        assert reserved.result()
    other.close()
    patient.close()


@pytest.mark.parametrize("content", [b"no database " * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_file_that_is_no_database_is_told_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    limiter = SqliteLimiter(path)
    for _ in range(2):
        with pytest.raises(LimiterFault) as caught:
            limiter.admit("a", WINDOWS, MIDNIGHT)
        assert str(caught.value) == f"The file {path} is no database of counters: remove it, or name another."
    assert path.read_bytes() == content
    path.unlink()
    assert limiter.admit("a", WINDOWS, MIDNIGHT) is None
    limiter.close()


def test_a_table_of_another_kind_is_told(path: Path, limiter: SqliteLimiter) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE limiter_accounts (ends REAL)")
    db.close()
    with pytest.raises(LimiterFault, match="is no database of counters"):
        limiter.spent_micros("docs")


@pytest.mark.parametrize("said", ["abc", 1.5, 1e300, -1])
def test_what_is_no_count_is_told(path: Path, limiter: SqliteLimiter, said: object) -> None:
    reserved = limiter.reserve("docs", 1, 10, MIDNIGHT)
    assert reserved
    assert limiter.admit("a", WINDOWS, MIDNIGHT) is None
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE limiter_accounts SET spent = ?", (said,))
        db.execute("UPDATE limiter_reservations SET micros = ?", (said,))
        db.execute("UPDATE limiter_requests SET count = ?", (said,))
    db.close()
    for step in (
        lambda: limiter.reserve("docs", 1, 10, MIDNIGHT),
        lambda: limiter.settle(reserved, 1),
        lambda: limiter.spent_micros("docs"),
        lambda: limiter.admit("a", WINDOWS, MIDNIGHT),
    ):
        with pytest.raises(LimiterFault, match="is no database of counters"):
            step()


def test_pages_that_are_damaged_are_told(path: Path) -> None:
    limiter = SqliteLimiter(path)
    assert all(limiter.admit(f"{i}" * 50, WINDOWS, MIDNIGHT) is None for i in range(200))
    limiter.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(LimiterFault, match="is no database of counters"):
        limiter.admit("0" * 50, WINDOWS, MIDNIGHT)
    limiter.close()


@pytest.mark.parametrize("name", ["", "file/limits.sqlite", "x" * 300])
def test_a_place_where_no_file_can_be_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LimiterFault, match="can't be used"):
        SqliteLimiter(tmp_path / name).spent_micros("docs")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_file_that_may_not_be_written_is_told(path: Path, limiter: SqliteLimiter) -> None:
    path.touch(mode=0o400)
    with pytest.raises(LimiterFault, match="can't be used"):
        limiter.spent_micros("docs")
