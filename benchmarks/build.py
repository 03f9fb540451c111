"""Measures what the plugin adds to a docs build without changes: `build.py DOCS_DIR [--rounds N]`.

Builds a folder of Markdown with Material for MkDocs, alternately without the plugin and with it on an index that is up
to date, each time in a new process. Prints the medians, the difference, and the number of embedded chunks. The bar: the
larger of 3 % and 150 ms, and nothing embedded; the exit code is 3 if it is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARE, SECONDS = 0.03, 0.15
CONFIG = """site_name: Bench
site_url: https://bench.example/
docs_dir: {docs}
site_dir: {site}
theme: material
markdown_extensions: [admonition, attr_list, pymdownx.superfences, "toc": {{permalink: true}}]
plugins: [{plugins}]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="build-") as temporary:
        folder = Path(temporary)
        shutil.copytree(arguments.docs, folder / "docs")
        build(folder, "chapterverse, search")
        plain: list[float] = []
        ours: list[float] = []
        embedded = 0
        for _ in range(arguments.rounds):
            plain.append(build(folder, "search")[0])
            seconds, log = build(folder, "chapterverse, search")
            ours.append(seconds)
            embedded += sum(map(int, re.findall(r"(\d+) embedded", log)))
    before, after = statistics.median(plain), statistics.median(ours)
    allowed = max(SHARE * before, SECONDS)
    print(
        f"plain {before:.2f} s, with the plugin {after:.2f} s: "
        f"{after / before:.3f} times, {1000 * (after - before):.0f} ms more"
    )
    print(f"allowed {1000 * allowed:.0f} ms; {embedded} chunks embedded in {arguments.rounds} builds")
    return 3 if after - before > allowed or embedded else 0


def build(folder: Path, plugins: str) -> tuple[float, str]:
    """Build once; return the seconds and the output."""
    name = "ours" if "chapterverse" in plugins else "plain"
    config = folder / f"{name}.yml"
    config.write_text(CONFIG.format(docs=folder / "docs", site=folder / name, plugins=plugins))
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config)]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(done.stderr)
    return seconds, done.stderr


if __name__ == "__main__":
    sys.exit(main())
