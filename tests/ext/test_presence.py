"""Whether a publisher on this machine still runs: a live one is never taken for dead."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chapterverse.ext.leases import Presence, seconds_until_gone, shared_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere nobody tells one boot from another.")

HOLDS = """
import contextlib, os, sys, time
from chapterverse.ext.leases import Presence
token, how = sys.argv[1:]
with Presence.hold(token) as presence:
    if how == "forks" and os.fork() == 0:
        time.sleep(60)
    with contextlib.suppress(TimeoutError), presence.sending(30):
        if how == "unanswered":
            raise TimeoutError
        if how == "sends":
            print("holds", flush=True)
            time.sleep(60)
    print("holds", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return secrets.token_hex(16)


@contextmanager
def holder(token: str, how: str = "") -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", HOLDS, token, how], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "holds\n"
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def leases() -> list[Path]:
    return [*shared_folder().glob("*.lease")]


def test_who_runs_is_seen_and_who_was_killed_is_gone(token: str) -> None:
    assert seconds_until_gone(token) is None
    with holder(token) as child:
        assert seconds_until_gone(token) is None
        child.send_signal(signal.SIGSTOP)
        assert seconds_until_gone(token) is None
        child.send_signal(signal.SIGCONT)
        child.kill()
        # A zombie is dead as well: nobody has asked for its end yet.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert seconds_until_gone(token) == 0.0
        child.wait()
        # It stays so, and for all that ask.
        assert seconds_until_gone(token) == seconds_until_gone(token) == 0.0
    assert seconds_until_gone(secrets.token_hex(16)) is None


def test_who_lets_go_leaves_nothing(token: str) -> None:
    with Presence.hold(token):
        assert seconds_until_gone(token) is None
        assert len(leases()) == 1
    assert leases() == []
    assert seconds_until_gone(token) is None


@pytest.mark.parametrize("how", ["sends", "unanswered"])
def test_what_a_killed_one_sent_may_still_arrive(token: str, how: str) -> None:
    with holder(token, how) as child:
        assert seconds_until_gone(token) is None
        child.kill()
        child.wait()
        left = seconds_until_gone(token)
        assert left is not None
        assert 25 < left <= 30
        time.sleep(0.1)
        assert (seconds_until_gone(token) or 99) < left


def test_what_was_answered_does_not_count_and_what_was_not_does(token: str) -> None:
    with Presence.hold(token) as presence:
        (file,) = leases()

        def until() -> float:
            return float(file.read_text()[64:])

        for _ in range(3):
            with presence.sending(20):
                assert until() > time.clock_gettime(time.CLOCK_BOOTTIME) + 19
            assert until() == 0
        with pytest.raises(TimeoutError), presence.sending(20):
            raise TimeoutError
        lost = until()
        with presence.sending(5):
            pass
        assert until() == lost


def test_a_child_that_outlives_a_killed_one_may_still_send(token: str) -> None:
    with holder(token, "forks") as child:
        (orphan,) = (int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split())
        child.kill()
        child.wait()
        try:
            assert seconds_until_gone(token) is None
        finally:
            os.kill(orphan, signal.SIGKILL)
        while Path(f"/proc/{orphan}/fd").exists() and seconds_until_gone(token) is None:
            time.sleep(0.01)
        assert seconds_until_gone(token) == 0.0


@pytest.mark.parametrize("other", ["boot", "namespace", "system"])
def test_a_copy_on_another_machine_proves_nothing(
    token: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holder(token):
        pass
    assert seconds_until_gone(token) == 0.0
    here = shared_folder()
    if other == "boot":
        (tmp_path / "boot").write_text("00000000-0000-4000-8000-000000000000\n")
        monkeypatch.setattr("chapterverse.ext.leases._BOOT_ID", tmp_path / "boot")
        shutil.copytree(here, shared_folder())
    elif other == "namespace":
        (tmp_path / "pid").symlink_to("pid:[4026532999]")
        monkeypatch.setattr("chapterverse.ext.leases._NAMESPACE", tmp_path / "pid")
    else:
        monkeypatch.setattr("chapterverse.ext.leases._NAMESPACE", tmp_path / "none")
    assert leases()
    assert seconds_until_gone(token) is None


@pytest.mark.parametrize("content", [b"", b"x" * 64, b"x" * 84, "machine", "machine and no number"])
def test_a_file_that_says_something_else_proves_nothing(token: str, content: bytes | str) -> None:
    with holder(token):
        (file,) = leases()
        machine = file.read_bytes()[:64]
    if isinstance(content, str):
        content = machine + content.removeprefix("machine").encode()
    file.write_bytes(content)
    assert seconds_until_gone(token) is None


def test_where_the_folder_is_not_ours_alone_nobody_is_seen(token: str) -> None:
    shared_folder().mkdir()
    shared_folder().chmod(0o777)
    with Presence.hold(token) as presence, presence.sending(1):
        assert leases() == []
        assert seconds_until_gone(token) is None


def test_what_was_left_long_ago_is_removed_and_what_is_held_is_not(token: str) -> None:
    with holder(token):
        pass
    with holder(f"{token} held"):
        for file in leases():
            os.utime(file, (0, 0))
        with Presence.hold(f"{token} next"):
            assert len(leases()) == 2
            assert seconds_until_gone(f"{token} held") is None
        assert seconds_until_gone(token) is None


def test_whatever_a_token_says_it_is_no_path(tmp_path: Path) -> None:
    for token in ("", "../../etc/passwd", "\0", "x" * 100_000, "\u2028"):
        with Presence.hold(token):
            assert [file.parent for file in leases()] == [shared_folder()]
            assert seconds_until_gone(token) is None
    assert [path.name for path in tmp_path.iterdir()] == [shared_folder().name]
