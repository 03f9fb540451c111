"""Compares speed and quality of Markdown chunkers, ours and peers in one run:  python benchmarks/chunking.py FOLDER …

Every chunker cuts each folder of .md and .mdx files to at most 512 cl100k tokens, alternately, `ROUNDS` times; the best
round of each counts, in CPU time. Ours starts from blocks like peers start from Markdown; reading is measured
separately below the table. The first call creates an environment from `benchmarks/requirements.txt`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import peer_environment

if TYPE_CHECKING:
    from corpus import File
    from peers import Piece

ROUNDS = 3
OURS = "Chapter & Verse"
KINDS = ("fences", "tables", "admonitions", "JSX")


def main() -> None:
    folders = [Path(argument) for argument in sys.argv[1:]]
    wrong = [folder for folder in folders if not folder.is_dir()]
    if wrong or not folders:
        sys.exit(f"{wrong[0]} is no folder." if wrong else "Name a folder of Markdown: benchmarks/chunking.py FOLDER …")
    peer_environment.enter()
    for folder in folders:
        _measure(folder)


def _measure(folder: Path) -> None:
    """Print the table of one folder, and below it what reading adds to ours."""
    from corpus import Corpus
    from peers import peers
    from quality import Quality

    corpus = Corpus.read(folder)
    if not corpus.files:
        sys.exit(f"{folder} holds no Markdown.")
    print(f"\n{folder}: {len(corpus.files)} files, {corpus.markdown_size / 1e6:.2f} MB of Markdown\n")
    print(f"{'':34}{'MB/s':>7}{'ours is':>10}{'chunks':>8}{'> 512':>7}{'lost path':>11}", end="")
    print("".join(f"{kind + ' cut':>17}" for kind in KINDS))
    rows: dict[str, Callable[[File], list[Piece]]] = {
        OURS: corpus.chunks,
        **{name: corpus.of_text(split) for name, split in peers().items()},
    }
    # Create the peers again for each round, because some cache token counts.
    seconds = _in_turns(lambda: rows | {n: corpus.of_text(split) for n, split in peers().items()}, corpus.files)
    for name, split in rows.items():
        quality = Quality()
        for file in corpus.files:
            quality.add(file.body, split(file))
        speed = corpus.markdown_size / 1e6 / seconds[name]
        print(f"{name:34}{speed:7.2f}{seconds[name] / seconds[OURS]:9.2f}x{quality.chunks:8}{quality.over:7}", end="")
        print(f"{100 * quality.lost / max(quality.placed, 1):10.1f}%", end="")
        print("".join(f"{quality.said(kind):>17}" for kind in KINDS))
    for name, work, size in (
        ("Markdown", corpus.from_markdown, corpus.markdown_size),
        ("HTML", corpus.from_html, corpus.html_size),
    ):
        best = _in_turns(partial(dict, [(name, work)]), corpus.files)[name]
        print(f"{name} -> chunks: {size / 1e6 / best:.2f} MB/s of {name} on one core")


def _in_turns(make: Callable[[], Mapping[str, Callable[[File], object]]], files: Sequence[File]) -> dict[str, float]:
    """Return the least processor seconds that each took for all files."""
    from chapterverse.text import tokens

    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, work in make().items():
            tokens.count.cache_clear()
            started = time.process_time()
            for file in files:
                work(file)
            best[name] = min(best.get(name, float("inf")), time.process_time() - started)
    return best


if __name__ == "__main__":
    main()
