"""Full and read-only disks, and runs that are told to stop."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.amounts import STRIKES
from faults.commands import exported, index, indexing, write_site
from faults.ground import Nurseries
from faults.publishing import Place, attempted, build, look, recover
from faults.scenarios import SCENARIOS

#: What the store leaves to others; see `chapterverse.store.files`.
_RESERVE = 64 << 20
#: How often a run is tried for each that is to be stopped: it may end before the signal arrives.
_TRIES = 5
#: Seconds after which a run that was told to stop hangs: a busy machine needs some.
_HANGS = 60


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of its own; skipped where none may be mounted.

    On a real one: in memory even a look at a hole takes room, and where there is none the process is killed.
    """
    image, disk = folder / "disk.img", folder / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    for command in (["mkfs.ext4", "-q", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(disk)]):
        if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("no file system may be made and mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_disk_that_fills_up_leaves_the_index_as_it_was(folder: Path, nurseries: Nurseries) -> None:
    """With any free space the result is an error message or a publication, and never a broken index."""
    scenario, said = SCENARIOS["edit"], []
    new = nurseries.run(build, Place(folder / "clean", f"edge:{folder / 'clean' / 'index'}"), scenario.after)
    with small_disk(folder, 256 << 20) as disk:
        place = Place(disk / "site", f"edge:{disk / 'site' / 'index'}")
        for left in (1 << 12, 1 << 20, *(_RESERVE + (megabytes << 20) for megabytes in (-1, 1, 2, 4, 16))):
            old = nurseries.run(build, place, *scenario.history).seen
            with fill(disk, left):
                said.append(nurseries.run(attempted, place, scenario.after))
            assert nurseries.run(look, place) == (old if said[-1] else new.seen)
            assert nurseries.run(recover, place, scenario.after).again == new
            shutil.rmtree(place.folder)
    assert all("No space left on device" in sentence for sentence in said if sentence), said
    assert said[0]
    assert not said[-1]


@contextlib.contextmanager
def fill(disk: Path, left: int) -> Iterator[None]:
    """Leave only so many bytes free."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - left)
    yield
    filler.unlink()


def stop_runs(folder: Path, signal_number: int, codes: tuple[int, ...], runs: int) -> None:
    """Stop so many runs in the middle of their work; the last run takes up what they left."""
    chance = random.Random(signal_number)
    site, other = write_site(folder / "site", "a", 40), write_site(folder / "other", "b", 40)
    store, clean = f"edge:{folder / 'index'}", f"edge:{folder / 'clean'}"
    for place, pages in ((store, site), (clean, other)):
        index(place, pages, folder)
    live, coming = (site, exported(store, folder)), (other, exported(clean, folder))
    stopped = 0
    for _ in range(_TRIES * runs):
        run = indexing(store, coming[0], folder)
        while run.poll() is None and not at_work(folder / "index"):
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.1))
        run.send_signal(signal_number)
        _, said = run.communicate(timeout=_HANGS)
        assert run.returncode in (0, *codes)
        assert "Traceback" not in said
        assert exported(store, folder) in (live[1], coming[1])
        stopped += run.returncode in codes
        if stopped == runs:
            break
        if run.returncode == 0:
            # It was faster than the signal, and the next one needs something to do.
            live, coming = coming, live
    assert stopped == runs
    index(store, coming[0], folder)
    assert exported(store, folder) == coming[1]


def at_work(index: Path) -> bool:
    """Whether a run has begun to write."""
    try:
        return any(index.rglob("*.new"))
    except FileNotFoundError:
        # A folder was moved or removed while it was searched.
        return True


#: How a stopped run may end, by itself or by the signal.
INTERRUPTED = (1, 130, -signal.SIGINT)
TERMINATED = (143, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("signal_number", "codes"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)], ids=["ctrl-c", "term"]
)
def test_a_run_that_is_told_to_stop_is_taken_up(signal_number: int, codes: tuple[int, ...], folder: Path) -> None:
    stop_runs(folder, signal_number, codes, STRIKES or 25)
