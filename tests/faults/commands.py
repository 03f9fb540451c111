"""The real command line in separate processes, on generated HTML sites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fakes.docs import BASE_URL, prose

_COMMAND = Path(sys.executable).parent / "chapterverse"
_SITE = "docs"


def write_site(folder: Path, seed: object, pages: int) -> Path:
    """Write a built site; pages of the same name differ from seed to seed."""
    folder.mkdir()
    for number in range(pages):
        sections = "".join(f'<h2 id="s{i}">Part {i}</h2><p>{prose((seed, number, i))}</p>' for i in range(3))
        html = (
            f'<!doctype html><html lang="en"><title>P{number}</title><main><h1>P{number}</h1>{sections}</main></html>'
        )
        (folder / f"page-{number}.html").write_text(html, "utf-8")
    return folder


def start(store: str, *arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHAPTERVERSE_")}
    return subprocess.Popen(
        [_COMMAND, *arguments, "--store", store, "--site", _SITE],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A group of its own, as a terminal gives it: what is sent to it reaches nobody else.
        start_new_session=True,
    )


def indexing(store: str, site: Path, cwd: Path) -> subprocess.Popen[str]:
    return start(store, "index", site, "--base-url", BASE_URL, cwd=cwd)


def index(store: str, site: Path, cwd: Path) -> None:
    """Index a site; that is to succeed."""
    run = indexing(store, site, cwd)
    _, said = run.communicate()
    assert run.returncode == 0, said


def exported(store: str, cwd: Path) -> bytes:
    """Return the canonical export of what is live."""
    file = cwd / "export.jsonl"
    process = start(store, "export", "--canonical", str(file), cwd=cwd)
    _, said = process.communicate()
    assert process.returncode == 0, said
    return file.read_bytes()


def one_sentence(said: str) -> bool:
    """Whether standard error is one error and nothing else."""
    lines = said.strip().splitlines()
    return len(lines) == 1 and lines[0].startswith("Error: ") and lines[0].endswith(".")
