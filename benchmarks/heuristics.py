"""What each hand-made sign of the search wins, on questions that its weight was not chosen on:

    python benchmarks/heuristics.py DATA --indexes FOLDER [--questions 120]

DATA/reading holds the chunks of thirty documentations, and questions that a language model wrote about single sections
of them, two of four in other words than the section has. Of the sites below the chunks are put together as pages by
their titles, in no particular order, and indexed in FOLDER/reading. So nothing is said here of what a file is called.

Each sign is left out in turn. Printed are the questions whose section is first and among the first five, the mean
reciprocal rank, and what the sign gains in it, with the interval of 95 % by a bootstrap over sites and their questions.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from understanding import Site

from chapterverse import calibration
from chapterverse_api.ext.evaluation.quoting import bare
from chapterverse_api.search import ranking, site_search
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.site_search import SearchRequest, retrieve

#: Which signs to leave out was chosen on the first, and nothing on the others.
HALVES = {
    "chosen on": (
        *("authelia", "gitea", "helm", "htmx", "jest", "navidrome", "pdm", "poetry"),
        *("prettier", "rustbook", "svelte", "textual", "tokio", "vite", "vitest", "webpack"),
    ),
    "held": ("flux", "gradio", "laravel", "mdbook", "openhab", "osguide", "react", "streamlit"),
}
#: Without the sign; `here` is 0 where no page is known.
WITHOUT: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "-": nullcontext,
    **{
        name: partial(mock.patch.dict, ranking.RANK_WEIGHTS, {name: 0.0})
        for name in ranking.RANK_WEIGHTS
        if name != "here"
    },
    "title, heading": lambda: mock.patch.dict(ranking.RANK_WEIGHTS, {"title": 0.0, "heading": 0.0}),
    "frames": lambda: mock.patch.object(ranking, "read_frame", return_value=None),
    "spelling": lambda: mock.patch.object(site_search, "correct", side_effect=lambda question, _: question),
    "synonyms": lambda: mock.patch.object(calibration, "_entries", return_value=[]),
}
#: A right chunk begins with so many letters of the chunk that was asked about; a shorter part of it is right too.
_KEY_CHARS, _LEAST_CHARS = 200, 60
#: Samples of the bootstrap, and a section that was not found.
_SAMPLES, _MISSING = 1000, 99
Row = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=120, help="questions of each site")
    options = parser.parse_args()
    chunks, rows = (_lines(options.data / f"reading/{name}.jsonl.xz") for name in ("chunks", "rows"))
    for half, names in HALVES.items():
        ranks: dict[str, dict[str, list[int]]] = defaultdict(dict)
        for name in names:
            site = open_site(name, chunks, options.indexes / "reading")
            asked = [row for row in rows if row["site"] == name and row["k"] == "Q"]
            asked = random.Random(7).sample(asked, min(options.questions, len(asked)))
            for sign, without in WITHOUT.items():
                with without():
                    ranks[sign][name] = [_rank(row["q"], bare(chunks[row["pos"]]["text"]), site) for row in asked]
            print(name, len(asked), file=sys.stderr, flush=True)
        print(f"\n{half}")
        report(ranks)


def _lines(path: Path) -> list[Row]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def open_site(name: str, chunks: Sequence[Row], folder: Path) -> Site:
    """Return the index of a site, which is made from its chunks if it is not there."""
    if not (folder / name).exists():
        pages = folder / "pages" / name
        for number, (title, text) in enumerate(_pages(chunk for chunk in chunks if chunk["site"] == name)):
            pages.mkdir(parents=True, exist_ok=True)
            slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "page"
            (pages / f"{slug}-{number}.md").write_text(text, encoding="utf-8")
        store = f"edge:{folder / name}"
        program = Path(sys.executable).with_name("chapterverse")
        command = [str(program), "index", str(pages), "--source", "--store", store]
        subprocess.run([*command, "--base-url", "https://x.example/", "--site", name], check=True)
    return Site.open(folder, name)


def _pages(chunks: Iterator[Row]) -> Iterator[tuple[str, str]]:
    """Yield the title and the Markdown of each page that the chunks are from."""
    pages: defaultdict[str, defaultdict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for chunk in chunks:
        title, *path = chunk["path"] or ["untitled"]
        pages[title][tuple(path)].append(chunk["text"])
    for title, sections in pages.items():
        parts, previous = [f"# {_line(title)}", *sections.pop((), [])], tuple[str, ...]()
        for path in sorted(sections):
            parts += (
                f"{'#' * min(6, depth + 2)} {_line(heading)}"
                for depth, heading in enumerate(path)
                if path[: depth + 1] != previous[: depth + 1]
            )
            parts += sections[path]
            previous = path
        yield title, "\n\n".join(parts) + "\n"


def _line(heading: str) -> str:
    return heading.replace("\n", " ")


def _rank(question: str, answer: str, site: Site) -> int:
    """Return how many sections stand before the right one."""
    before = set[ranking.SectionKey]()
    for candidate in retrieve(site.snapshot, None, SearchRequest(question)).candidates:
        section = ranking.section_key(candidate.chunk)
        if _is_right(candidate, answer):
            return len(before - {section})
        before.add(section)
    return _MISSING


def _is_right(candidate: Candidate, answer: str) -> bool:
    text = bare(candidate.chunk.text)
    return answer[:_KEY_CHARS] in text or (len(text) > _LEAST_CHARS and text in answer)


def report(ranks: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
    """Print the figures of each sign."""
    rng = random.Random(1)
    for sign, by_site in ranks.items():
        every = [rank for of_site in by_site.values() for rank in of_site]
        gains = {
            name: [_reciprocal(a) - _reciprocal(b) for a, b in zip(ranks["-"][name], of_site, strict=True)]
            for name, of_site in by_site.items()
        }
        gain = statistics.fmean(g for of_site in gains.values() for g in of_site)
        samples = sorted(_resampled(gains, rng) for _ in range(_SAMPLES))
        low, high = samples[_SAMPLES // 40], samples[-_SAMPLES // 40 - 1]
        first, five = (sum(rank < n for rank in every) / len(every) for n in (1, 5))
        print(
            f"without {sign:16} first {first:.3f}  five {five:.3f}  MRR {statistics.fmean(map(_reciprocal, every)):.3f}"
            f"  it gains {gain:+.4f} [{low:+.4f}, {high:+.4f}]  of {len(every)}"
        )


def _reciprocal(rank: int) -> float:
    return 0.0 if rank == _MISSING else 1 / (1 + rank)


def _resampled(gains: Mapping[str, Sequence[float]], rng: random.Random) -> float:
    sites = rng.choices(list(gains), k=len(gains))
    return statistics.fmean(g for name in sites for g in rng.choices(gains[name], k=len(gains[name])))


if __name__ == "__main__":
    main()
