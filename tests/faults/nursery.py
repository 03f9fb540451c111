"""Processes that start fast and may be killed.

A *nursery* has everything imported and nothing open, and forks a child for each job: a child costs milliseconds instead
of an interpreter's start. It never opens an index itself: a fork beside an open shard hangs.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class End:
    """How a child ended: killed by `signal`, or with the `value` that its job returned."""

    signal: int
    value: Any = None

    @property
    def killed(self) -> bool:
        return self.signal == signal.SIGKILL


class Child:
    """A running job."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid

    def kill(self) -> None:
        """Send SIGKILL; the process can't be another's by now, because only `wait` buries it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> End:
        end: End = self._nursery._ask("wait", self.pid)
        return end


class Nursery:
    """Starts children, one call at a time; a context manager."""

    def __init__(self, **environment: str) -> None:
        search = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.nursery"],
            env={**os.environ, "PYTHONPATH": search, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(self, job: Callable[..., object], *arguments: object) -> Child:
        """Run a function of a module, with arguments that can be pickled, in a process of its own."""
        return Child(self, self._ask("start", (job, arguments)))

    def run(self, job: Callable[..., object], *arguments: object) -> Any:
        """Return what the job returns; a job that dies, or raises, is a failure."""
        end = self.start(job, *arguments).wait()
        assert not end.signal, f"{job.__name__} was ended by signal {end.signal}"
        return end.value

    def _ask(self, what: str, about: object) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        _send(self._process.stdin, (what, about))
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, End) and isinstance(answer.value, _Raised):
            raise AssertionError(f"a job failed:\n{answer.value.trace}")
        return answer


@dataclass(frozen=True, slots=True)
class _Raised:
    trace: str


def _send(file: BinaryIO | Any, message: object) -> None:
    pickle.dump(message, file)
    file.flush()


def _fork(job: Callable[..., object], arguments: tuple[object, ...]) -> tuple[int, int]:
    """Return a child's process id and where its result is to be read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    value: object
    # Even an exit must not unwind into the loop of the nursery.
    try:
        value = job(*arguments)
    except BaseException:
        value = _Raised(traceback.format_exc())
    with os.fdopen(writing, "wb") as result:
        pickle.dump(value, result)
    os._exit(0)


def _wait(pid: int, reading: int) -> End:
    with os.fdopen(reading, "rb") as result:
        said = result.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return End(-code) if code else End(0, pickle.loads(said))


def _serve() -> None:
    # A child that prints must not print into the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    results: dict[int, int] = {}
    while True:
        try:
            what, about = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if what == "start":
            pid, results_of_pid = _fork(*about)
            results[pid] = results_of_pid
            _send(answers, pid)
        else:
            _send(answers, _wait(about, results.pop(about)))


if __name__ == "__main__":
    # By its own name, or there would be two classes `End`.
    from faults import nursery, publishing

    publishing.warm()
    # A collection in a child would copy all that it looks at.
    gc.freeze()
    nursery._serve()
