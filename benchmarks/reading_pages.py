"""Measures the readers' speed: MB/s of page HTML on one core, for built sites, and for code and prose alone.

    python benchmarks/reading_pages.py SITE_DIR [SITE_DIR ...]

"look" is the cost of a build without changes (find the content, hash it), "read" the whole way to sections. The best of
`RUNS` counts. Without a folder the captured sites of the tests are read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from chapterverse.readers.html.metadata import read_metadata
from chapterverse.readers.sections.html_page import read_document, read_fragment

RUNS = 5
SAMPLES = {
    "prose": "<h2 id='a'>Heading</h2><p>" + "Some words of <em>plain</em> text with <code>code</code>. " * 20 + "</p>",
    "code": "<div class='highlight'><pre><span></span><code>"
    + "<span class='k'>if</span> <span class='n'>x</span><span class='p'>:</span>\n" * 40
    + "</code></pre></div>",
    "tables": "<table><tr><th>A</th><th>B</th></tr>" + "<tr><td><code>a</code></td><td>b</td></tr>" * 40 + "</table>",
}


def megabytes_per_second(work: Callable[[str], object], texts: list[str]) -> float:
    best = min(_seconds(work, texts) for _ in range(RUNS))
    return sum(len(text.encode()) for text in texts) / best / 1e6


def _seconds(work: Callable[[str], object], texts: list[str]) -> float:
    started = time.perf_counter()
    for text in texts:
        work(text)
    return time.perf_counter() - started


def main() -> None:
    captured = sorted(
        p for p in (Path(__file__).parents[1] / "tests/sites").iterdir() if p.name != "golden" and p.is_dir()
    )
    folders = [Path(argument) for argument in sys.argv[1:]] or captured
    print(f"{'':28}{'pages':>6}{'MB':>8}{'look MB/s':>11}{'read MB/s':>11}{'content MB/s':>14}")
    for folder in folders:
        pages = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.html"))]
        fragments = [read_document(page).fragment for page in pages]
        size = sum(len(page.encode()) for page in pages) / 1e6
        speeds = (megabytes_per_second(read_metadata, pages), megabytes_per_second(read_document, pages))
        content = megabytes_per_second(lambda html: read_fragment(html, "Title"), fragments)
        print(f"{folder.name:28}{len(pages):6}{size:8.2f}{speeds[0]:11.1f}{speeds[1]:11.1f}{content:14.1f}")
    for name, sample in SAMPLES.items():
        html = sample * (1_000_000 // len(sample))
        speed = megabytes_per_second(lambda text: read_fragment(text, "Title"), [html])
        print(f"{name + ' alone':28}{'':6}{len(html) / 1e6:8.2f}{'':11}{'':11}{speed:14.1f}")


if __name__ == "__main__":
    main()
