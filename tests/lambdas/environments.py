"""Execution environments: one process of a Python runtime each, started and killed like Lambda does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty
from types import TracebackType
from typing import Self

from lambdas.runtime_api import Invocation, RuntimeApi

ROOT = Path(__file__).parents[2]
#: Our runtime as Lambda starts it: the wrapper, and the command of its own runtime.
BOOTSTRAP = ("sh", str(ROOT / "infra" / "bootstrap"), sys.executable, "/var/runtime/bootstrap.py")
#: AWS's own.
AWSLAMBDARIC = (sys.executable, "-m", "awslambdaric")
HANDLER = "chapterverse_api.handler.handler"


class Failed(Exception):
    """The function gave no answer: it crashed, was killed, or said that it failed."""


class Environment:
    """One process and its Runtime API; it takes one invocation at a time.

    Attributes:
        api: what the process speaks to.
        log: the file that the process writes to.
    """

    def __init__(
        self, command: tuple[str, ...], folder: Path, handler: str = HANDLER, **environment: str | Path
    ) -> None:
        self.api = RuntimeApi()
        self.log = folder / f"log-{id(self)}"
        arguments = [*command, handler] if command == AWSLAMBDARIC else list(command)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "AWS_", "COHERE_"))}
        named = {"_HANDLER": handler, "AWS_LAMBDA_RUNTIME_API": self.api.address, "LAMBDA_TASK_ROOT": str(folder)}
        named |= {"PYTHONUNBUFFERED": "", "PYTHONWARNINGS": "ignore"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                arguments,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=kept | named | {name: str(value) for name, value in environment.items()},
            )

    def answer(self, event: bytes, headers: Mapping[str, str] = {}, seconds: float = 60.0) -> Invocation:
        """Invoke the function and wait for the end of its answer, whose pieces are left in place."""
        invocation = self.api.invoke(event, seconds, headers)
        pieces = list(self.pieces(invocation))
        for piece in [*pieces, None]:
            invocation.pieces.put(piece)
        return invocation

    def pieces(self, invocation: Invocation) -> Iterator[bytes]:
        """Yield the answer as it comes.

        Raises:
            Failed: there is none, or not all of it; the process was killed if it took too long.
        """
        # The time that a process takes to start is not the function's.
        while not self.api.asked.wait(0.02):
            if self.process.poll() is not None:
                raise Failed("Runtime.ExitError")
        end = time.monotonic() + invocation.seconds
        while (piece := self._piece(invocation, end)) is not None:
            yield piece
        if invocation.error:
            raise Failed(invocation.error[0])

    def _piece(self, invocation: Invocation, end: float) -> bytes | None:
        while True:
            with suppress(Empty):
                return invocation.pieces.get(timeout=0.02)
            if self.process.poll() is not None and invocation.pieces.empty():
                raise Failed("Runtime.ExitError")
            if time.monotonic() > end:
                self.process.kill()
                raise Failed("Sandbox.Timedout")

    def lines(self) -> list[str]:
        """Return the process's output."""
        return self.log.read_text(encoding="utf-8").splitlines()

    def __enter__(self) -> Self:
        self.api.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        self.api.__exit__(kind, error, tb)
