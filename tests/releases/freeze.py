"""Writes what the checked-out release writes, as a fixture for later ones: `python -m releases.freeze` in `tests/`.

The project is built with the plugin, with and without dense vectors, its site is indexed by the command, and a reader
asks in a browser. All of it goes into `VERSION/written.tar.xz`, beside the project that it was made from. It needs a
Chromium, as the tests of the widget do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chapterverse import __version__
from e2e.sites import address
from fakes.cohere_server import KEY, CohereServer
from releases.release_files import DENSE, EXPORT, PLAIN, RECORDS, SESSION, SIGNING_KEY, SITE, export_path

HERE = Path(__file__).parent
CHROMIUM = HERE.parents[1] / "scripts" / "chromium.py"

#: The FAQ answers the first, the docs say nothing of the fifth, and the sixth makes a summary.
QUESTIONS = (
    "Who may open a crate?",
    "How do I rotate a signing key?",
    "How long does the old key stay valid?",
    "What is the default of dock.size?",
    "Who won the cup in 1954?",
    "How do I install Harbor on Debian?",
    "On which port does a dock listen?",
)


def freeze(folder: Path) -> None:
    """Write the fixture of a release next to its project in `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copytree(folder / "project", root, dirs_exist_ok=True)
        _index(root)
        _converse(root)
        _pack(root, folder / "written.tar.xz")


def _index(root: Path) -> None:
    """Index the project thrice: by the plugin, by the plugin with dense vectors, and its built site by the command."""
    _run(root, "mkdocs", "build", CHAPTERVERSE_STORE=f"edge:{PLAIN}")
    _run(root, "chapterverse", "index", "site", "--knowledge", "docs/knowledge", CHAPTERVERSE_STORE=f"edge:{SITE}")
    with CohereServer() as cohere:
        names = {"CHAPTERVERSE_COHERE_URL": cohere.url, "COHERE_API_KEY": KEY, "CHAPTERVERSE_EMBEDDER": "cohere"}
        _run(root, "mkdocs", "build", CHAPTERVERSE_STORE=f"edge:{DENSE}", **names)
    for store in (PLAIN, DENSE, SITE):
        _run(root, "chapterverse", "export", "--canonical", export_path(store), CHAPTERVERSE_STORE=f"edge:{store}")
    _run(root, "chapterverse", "export", EXPORT, CHAPTERVERSE_STORE=f"edge:{DENSE}")


def _converse(root: Path) -> None:
    """Ask in the built site's chat, rate answers, and write what the browser keeps of it."""
    from playwright.sync_api import sync_playwright

    path = subprocess.run([sys.executable, CHROMIUM], capture_output=True, text=True, check=True).stdout.strip()
    with _served(root) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(url)
        page.locator("chapter-verse .launcher").last.click()
        for number, question in enumerate(QUESTIONS):
            page.locator("chapter-verse textarea").fill(question)
            page.locator("chapter-verse textarea").press("Enter")
            page.locator(".turn").nth(number).locator(".copy_answer").wait_for()
        for number, thumb in ((0, "up"), (4, "down")):
            button = page.locator(".turn").nth(number).locator(f"button.{thumb}")
            with page.expect_response("**/v1/feedback"):
                button.click()
        session = page.evaluate("sessionStorage.chatbot_session")
        browser.close()
    text = json.dumps(json.loads(session), ensure_ascii=False, indent=1)
    (root / SESSION).write_text(f"{text}\n", encoding="utf-8")


@contextmanager
def _served(root: Path) -> Iterator[str]:
    names = {"CHAPTERVERSE_RECORDS": f"sqlite:{RECORDS}", "CHAPTERVERSE_SIGNING_KEY": SIGNING_KEY}
    environment = _environment(CHAPTERVERSE_STORE=f"edge:{PLAIN}", CHAPTERVERSE_RATES="off", **names)
    command = [_program("chapterverse"), "serve", "--port", "0", "--site-dir", "site"]
    server = subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield address(server)
    finally:
        server.terminate()
        server.communicate(timeout=10)


def _pack(root: Path, file: Path) -> None:
    written = [root / name for name in ("site", "written", RECORDS, SESSION)]
    with tarfile.open(file, "w:xz") as archive:
        for path in written:
            archive.add(path, path.relative_to(root), filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _run(root: Path, program: str, *arguments: str, **environment: str) -> None:
    subprocess.run([_program(program), *arguments], cwd=root, env=_environment(**environment), check=True)


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _environment(**names: Any) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHAPTERVERSE_", "COHERE_"))}
    return {**kept, "NO_MKDOCS_2_WARNING": "1", **names}


if __name__ == "__main__":
    freeze(HERE / __version__)
