"""Measures an index of a very large site: `scale.py [--pages 100000] [--folder DIR]`.

Creates a site of that many pages and runs the command line on it, each time in a new process: a plan (`index
--dry-run`) of the new site, the first `index`, an `index` without changes, then a plan and an `index` after one page
was edited, and an `index` after a folder of 200 pages was renamed. Prints seconds, CPU seconds, pages per second,
largest resident memory (which includes mapped files where the engine runs), and the number of embedded chunks. The bars
at 100,000 pages: a plan in 60 s, a run without changes in 30 s, each in 1 GB; the exit code is 3 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PLAN_SECONDS, UNCHANGED_SECONDS, MEMORY_MB = 60, 30, 1000
FOLDER = 200
BASE = "https://docs.example/"

_WORDS = (
    "anchor archive block branch bucket build cache chapter client cluster column commit config cookie cursor daemon"
    " database deploy digest docker domain editor endpoint engine export field filter gateway handler header import"
    " kernel label ledger limit loader locale lock macro marker method module network option packet panel parser"
    " pipeline plugin policy port proxy query queue record region registry release render replica request route runtime"
    " schema scope script section server session setting shard signal socket source stack stream string table target"
    " template tenant theme thread token trace tunnel update upload vector version volume webhook widget worker zone"
).split()


@dataclass(frozen=True)
class Run:
    name: str
    seconds: float
    cpu_seconds: float
    megabytes: float
    document: dict[str, object]

    def __str__(self) -> str:
        pages = self.document["pages"]
        assert isinstance(pages, dict)
        return (
            f"{self.name:20} {self.seconds:7.1f} s {self.cpu_seconds:7.1f} s of CPU "
            f"{pages['seen'] / self.seconds:7.0f} pages/s {self.megabytes:6.0f} MB {self.document['embedded']} embedded"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="scale-"))
    try:
        runs = measure(folder, arguments.pages)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    bars = {"plan of a new site": PLAN_SECONDS, "nothing changed": UNCHANGED_SECONDS}
    missed = [r.name for r in runs if r.name in bars and (r.seconds > bars[r.name] or r.megabytes > MEMORY_MB)]
    print(f"bars missed: {', '.join(missed)}" if missed else "every bar met")
    return 3 if missed else 0


def measure(folder: Path, pages: int) -> list[Run]:
    site = folder / "site"
    write_site(site, pages)
    runs: list[Run] = []

    def run(name: str, *flags: str) -> None:
        runs.append(command(name, folder, *flags))
        print(runs[-1], flush=True)

    run("plan of a new site", "--dry-run")
    run("first index")
    run("nothing changed")
    page = site / "0" / "0" / "index.html"
    page.write_text(page.read_text("utf-8").replace("</article>", "<p>One more sentence.</p></article>"), "utf-8")
    run("plan after one edit", "--dry-run")
    run("one page edited")
    (site / "1").rename(site / "renamed")
    run(f"{FOLDER} pages renamed")
    return runs


def write_site(site: Path, pages: int) -> None:
    """Write pages of three sections and about 3 kB each, `FOLDER` of them per folder."""
    for number in range(pages):
        place = site / str(number // FOLDER) / str(number % FOLDER)
        place.mkdir(parents=True)
        (place / "index.html").write_text(html(number), "utf-8")


def html(number: int) -> str:
    chance = random.Random(number)
    sections = "".join(
        f'<h2 id="s{i}">Section {i} of {number}</h2><p>{prose(chance)}</p><pre><code>run --{chance.choice(_WORDS)}'
        f"</code></pre><p>{prose(chance)}</p>"
        for i in range(3)
    )
    return (
        f'<!doctype html><html lang="en"><head><title>Page {number}</title></head><body><nav>Menu</nav><main><article>'
        f'<h1 id="top">Page {number}</h1><p>{prose(chance)}</p>{sections}</article></main></body></html>'
    )


def prose(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=60)).capitalize() + "."


def command(name: str, folder: Path, *flags: str) -> Run:
    program = "from chapterverse.cli import main; main()"
    arguments = ["index", str(folder / "site"), "--base-url", BASE, "--store", f"edge:{folder / 'index'}", "--json"]
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments, *flags], stdout=out, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        out.seek(0)
        if status:
            sys.exit(f"{name} failed")
        return Run(name, seconds, usage.ru_utime + usage.ru_stime, megabytes(usage), json.load(out))


def megabytes(usage: resource.struct_rusage) -> float:
    # Linux counts kilobytes, macOS bytes.
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


if __name__ == "__main__":
    sys.exit(main())
