"""Clients of limiters that are processes and may die, and the journal that shows what each one did.

`python -m api.limits.processes FOLDER SEED...` runs schedules: each client is a fork of that process, which has
everything imported and nothing open.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from api.limits.schedules import CLIENTS, Entry, Turn, plans
from chapterverse_api.ext.limiter.sqlite import SqliteLimiter

ACCOUNT = "docs"
#: Microdollars: a third of what the clients would set aside.
CAP = 80_000
NOW = 1_795_219_200.0

_TESTS = Path(__file__).parents[2]


def run(folder: Path, seeds: Iterable[int]) -> None:
    """Run a schedule for each seed, in processes, each in its own folder below this one."""
    command = [sys.executable, "-m", "api.limits.processes", str(folder), *map(str, seeds)]
    search = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": search})


def entries(folder: Path) -> list[Entry]:
    """Return the known facts of all turns of a schedule."""
    return [entry for journal in sorted(folder.glob("*.log")) for entry in _entries(journal)]


def _schedule(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    folder.mkdir()
    chosen = plans(draw, turns=4, kills=0.05)
    clients = [_forked(folder, i, plan) for i, plan in enumerate(chosen)]
    # Besides those that kill themselves between two steps, some die wherever they are, in a transaction too.
    for client in draw.sample(clients, CLIENTS // 4):
        time.sleep(draw.uniform(0, 0.01))
        os.kill(client, signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]) for client in clients]
    assert set(codes) <= {0, -signal.SIGKILL}, codes
    assert codes.count(-signal.SIGKILL) >= 3, codes


def _forked(folder: Path, number: int, plan: Sequence[Turn]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    # Even an error must not unwind into the loop that forks.
    try:
        _trade(folder / "limits.sqlite", folder / f"{number}.log", plan, random.Random(number))
        code = 0
    finally:
        os._exit(code)


def _trade(path: Path, journal: Path, plan: Sequence[Turn], draw: random.Random) -> None:
    """Act as one client; the journal records each step before and after it."""
    limiter = SqliteLimiter(path, lock_timeout=60.0)
    # A killed process loses nothing that the kernel has.
    with journal.open("ab", buffering=0) as file:

        def tell(step: str, amount: int = 0) -> None:
            file.write(json.dumps([step, amount]).encode() + b"\n")

        for turn in plan:
            tell("asking", turn.worst)
            reserved = limiter.reserve(ACCOUNT, turn.worst, CAP, NOW)
            tell("reserved" if reserved else "refused", reserved.spent if reserved else 0)
            if reserved is None:
                continue
            if turn.end == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            tell("paid", turn.cost)
            time.sleep(draw.uniform(0, 0.004))
            if turn.end == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            tell("settling", turn.cost)
            limiter.settle(reserved, turn.cost)
            tell("settled")
            if turn.end == "twice":
                limiter.settle(reserved, turn.cost)


def _entries(journal: Path) -> list[Entry]:
    turns: list[dict[str, int]] = []
    for line in journal.read_text().splitlines():
        step, amount = json.loads(line)
        if step == "asking":
            turns.append({})
        turns[-1][step] = amount
    return [_entry(turn) for turn in turns if "refused" not in turn]


def _entry(turn: dict[str, int]) -> Entry:
    if "reserved" not in turn:
        # Killed while it asked: the limiter may have heard of it, or not.
        return Entry(turn["asking"], 0, 0, settled=0, certain=False)
    return Entry(turn["asking"], turn["reserved"], turn.get("paid", 0), turn.get("settling"), certain="settled" in turn)


if __name__ == "__main__":
    for given in sys.argv[2:]:
        _schedule(Path(sys.argv[1]) / given, int(given))
