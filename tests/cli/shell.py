"""A folder with a built site where commands run, in this process or in one of their own."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from chapterverse.cli import main
from fakes.environment import replaced_environment

BASE = "https://tea.example.com/docs/"
PAGE = """<!doctype html><html lang="en"><head><title>{title}</title>
<link rel="canonical" href="{url}"></head><body><nav>Menu</nav><main><article>
<h1 id="top">{title}</h1>{body}</article></main></body></html>"""
PAGES = {
    "index.html": ("Home", "<p>Welcome to the teapot.</p>"),
    "brew/index.html": (
        "Brewing",
        '<p>Hot water first.</p><h2 id="green-tea">Green tea</h2><p>Eighty degrees are enough for green tea.</p>',
    ),
    "clean/index.html": ("Cleaning", "<p>Vinegar dissolves lime.</p>"),
}
QUESTION = "How many degrees are enough for green tea?"


@dataclass(frozen=True)
class CommandResult:
    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Shell:
    """A folder with a built site in `site/`, where commands are run."""

    root: Path

    @classmethod
    def with_site(cls, root: Path) -> Shell:
        """Return a shell with the pages of `PAGES`, which are not indexed."""
        shell = cls(root)
        for path, (title, body) in PAGES.items():
            shell.write(path, title, body)
        return shell

    @classmethod
    def with_index(cls, root: Path) -> Shell:
        """Return a shell whose pages are indexed."""
        shell = cls.with_site(root)
        shell.run("index", "site")
        return shell

    def write(self, path: str, title: str, body: str) -> None:
        file = self.root / "site" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        html = PAGE.format(title=title, url=BASE + path.removesuffix("index.html"), body=body)
        file.write_text(html, encoding="utf-8")

    def run(self, *arguments: str, code: int = 0, environment: Mapping[str, str] = {}) -> CommandResult:
        """Run a command in this process to its end; its exceptions fail the test."""
        with chdir(self.root), replaced_environment(clean(environment)):
            return CommandResult(code, *run(*arguments, code=code))

    def json(self, *arguments: str, **environment: str) -> Any:
        """Return a command's whole output with --json."""
        return json.loads(self.run(*arguments, "--json", environment=environment).stdout)

    def refused(self, *arguments: str, code: int = 1, **environment: Any) -> str:
        """Return the one sentence of a command that fails, and that prints nothing else, or a document with --json."""
        result = self.run(*arguments, code=code, environment=environment)
        assert result.stdout == "" or ("--json" in arguments and [*json.loads(result.stdout)] == ["error"])
        lines = result.stderr.strip().splitlines()
        if code == 1:
            assert len(lines) == 1, result.stderr
        assert lines[-1].startswith("Error: ")
        return lines[-1].removeprefix("Error: ")


def run(*arguments: object, code: int = 0) -> tuple[str, str]:
    """Run a command in this process to its end; return its standard output and standard error."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
    assert status == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def command(*arguments: str) -> list[str]:
    """Return the arguments that run a command in a separate process."""
    return [sys.executable, "-c", "from chapterverse.cli import main; main()", *arguments]


def clean(more: Mapping[str, str] = {}) -> dict[str, str]:
    """Return this environment without settings of ours but those given."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "COHERE_"))}
    return {**kept, "PYTHONUNBUFFERED": "1", "COLUMNS": "80", **more}


def typed(shell: Shell, *arguments: str) -> str:
    """Return a command's output on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), cwd=shell.root, env=clean({"TERM": "xterm"}), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            piece = b""
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


def get(url: str, **options: Any) -> httpx.Response:
    """Ask a server that has just said where it listens."""
    for _ in range(100):
        try:
            return httpx.get(url, timeout=60, **options)
        except httpx.ConnectError:
            time.sleep(0.05)
    raise AssertionError(f"nothing answers at {url}")
