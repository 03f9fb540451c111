"""Counts the house: how large core and rooms are, and how much of them one question, one build and one command enter.

    python scripts/house.py [--static]

The core is what nobody can do without; a room is what some owners switch on. Lines are all lines of a file; `tokenize`
tokens are counted without comments and line ends. A question is `POST /v1/chat` without a model on an index of one
page: the first one of a process with what starts it, and the same again. Files and functions are those that are
entered, and not those that are only imported. `--static` leaves out what has to run. Figures of a run stand in
`scripts/house.md`.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "plugin" / "chapterverse", ROOT / "lambda" / "chapterverse_api")
#: Rooms that have not moved to `ext/` yet: paths below `plugin/chapterverse` and `lambda/chapterverse_api`. The first
#: room that one fits holds the file.
ROOMS = {
    "aws": "handler.py",
    "reading": "reading/* search/reading.py",
}
#: Tokens that are no code.
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_RUNS = 7

#: Asks twice, and prints the files and functions of ours that were entered each time.
_QUESTION = """
import json, sys, threading
from fastapi.testclient import TestClient
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.service import Service
entered = set()
def enter(frame, event, _):
    if event == "call" and "chapterverse" in frame.f_code.co_filename:
        entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))
def ask():
    answer = client.post("/v1/chat", json={"query": "Kettle sings for minutes?"}, headers={"host": "127.0.0.1:8765"})
    assert answer.json()["status"] == "answered", answer.text
    calls = sorted(entered)
    entered.clear()
    return calls
threading.setprofile_all_threads(enter) if hasattr(threading, "setprofile_all_threads") else threading.setprofile(enter)
sys.setprofile(enter)
with TestClient(create_app(Service.open(Settings(store="edge:" + sys.argv[1], reading_model="none")))) as client:
    print(json.dumps([ask(), ask()]))
"""


def room_of(path: str) -> str:
    """Return the room of a file, named from its package down; `core` if it is in none."""
    if path.startswith("ext/") and path.count("/") > 1:
        return path.split("/")[1]
    return next((room for room, globs in ROOMS.items() if any(fnmatch(path, g) for g in globs.split())), "core")


def sizes() -> Iterator[str]:
    files, lines, tokens = Counter[str](), Counter[str](), Counter[str]()
    for package in PACKAGES:
        for file in sorted(package.rglob("*.py")):
            room = room_of(file.relative_to(package).as_posix())
            with file.open("rb") as source:
                code = [t for t in tokenize.tokenize(source.readline) if t.type not in _NO_CODE and t.string]
            files[room] += 1
            lines[room] += file.read_text(encoding="utf-8").count("\n")
            tokens[room] += len(code)
    yield f"{'':14}{'files':>8}{'lines':>8}{'tokens':>9}"
    for room, _ in lines.most_common():
        yield f"{room:14}{files[room]:8}{lines[room]:8}{tokens[room]:9}"
    yield f"{'all':14}{files.total():8}{lines.total():8}{tokens.total():9}"


def entered(store: Path) -> Iterator[str]:
    done = subprocess.run([sys.executable, "-c", _QUESTION, store], stdout=subprocess.PIPE, text=True, check=True)
    for name, calls in zip(("cold", "warm"), json.loads(done.stdout.splitlines()[-1]), strict=True):
        files = {file for file, _ in calls}
        folders = {Path(file).parent for file in files}
        yield f"one question, {name}: {len(files)} files in {len(folders)} packages, {len(calls)} functions"


def imported(site: Path) -> str:
    """Return how many of our modules a MkDocs build of one page loads."""
    program = (
        "import sys; from mkdocs.__main__ import cli\n"
        "try: cli(['build', '-q', '-f', sys.argv[1]], standalone_mode=False)\n"
        "finally: print(sum(n.partition('.')[0] in ('chapterverse', 'chapterverse_api') for n in sys.modules))"
    )
    run = [sys.executable, "-c", program, site / "mkdocs.yml"]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=site)
    return f"a MkDocs build of one page: {done.stdout.splitlines()[-1]} of our modules"


def processor_seconds(program: Path) -> float:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "--version"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return statistics.median(once() for _ in range(_RUNS))


def measured() -> Iterator[str]:
    programs = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        (site / "docs").mkdir()
        (site / "docs" / "index.md").write_text("# Kettles\n\n## Singing\n\nA kettle sings for ten minutes.\n")
        config = "site_name: Kettles\nsite_url: https://kettles.example/\nplugins: [{chapterverse: {endpoint: /}}]\n"
        (site / "mkdocs.yml").write_text(config)
        yield imported(site)
        yield from entered(site / ".cache/plugin/chapterverse")
    ours, theirs = processor_seconds(programs / "chapterverse"), processor_seconds(programs / "mkdocs")
    yield f"chapterverse --version: {ours / theirs:.2f} x the processor time of mkdocs --version"


if __name__ == "__main__":
    for line in sizes():
        print(line)
    if "--static" not in sys.argv:
        print()
        for line in measured():
            print(line)
