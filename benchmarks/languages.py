"""Whether the reading model leaves other languages than English alone: `languages.py DATA --model FOLDER`.

DATA holds `corpora/starlight` and `corpora/vitepress`. The questions of `questions/languages.jsonl` are asked three
times with the model and without: of the site with the language of each page, of the pages in the question's language
alone, whose language is then stated nowhere, and of the English pages. Prints how often both orders are the same, how
often the model read, and without it and with it the share of questions whose page and section are among the first 1,
3 and 5 results. No model is asked but that one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chapterverse.settings import Settings
from chapterverse_api.contract import RetrievalRequest
from chapterverse_api.retrieval_contract import RetrievedChunk
from chapterverse_api.search import reading
from chapterverse_api.service import Service

#: Where a site's pages are, and where its English ones, and its languages beside English.
SITES = {
    "starlight": ("docs/src/content/docs", "", ("de", "fr")),
    "vitepress": ("docs", "en", ("ja", "es")),
}
FIRST = (1, 3, 5)
_QUESTIONS = Path(__file__).with_name("questions") / "languages.jsonl"
_SUFFIX = re.compile(r"(?:/?index)?\.mdx?$")
#: Signs of Markdown in a heading, and the anchor behind it.
_MARKS = re.compile(r"[`*\u00ad]|&shy;|\s*\{.*?\}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", required=True, help="folder of the reading model")
    options = parser.parse_args()
    # However busy the machine is, everything is read.
    reading.MAX_READING_SECONDS = 600.0
    rows = [json.loads(line) for line in _QUESTIONS.read_text("utf-8").splitlines()]
    for site, (folder, english, languages) in SITES.items():
        root = options.data / "corpora" / site / folder
        with tempfile.TemporaryDirectory() as scratch:
            for name, pages, left_out in (
                ("whole", root, ()),
                ("english", root / english, languages),
                *((language, root / language, ()) for language in languages),
            ):
                _index(pages, Path(scratch) / name, left_out)
            for language in languages:
                asked = [row for row in rows if row["language"] == language]
                for name in ("whole", language, "english"):
                    _print(f"{site} {language} of {name}", asked, Path(scratch) / name, options.model)


def _index(pages: Path, store: Path, left_out: Sequence[str]) -> None:
    exclude = [part for language in left_out for part in ("--exclude", f"{language}/*")]
    command = [sys.executable, "-c", "from chapterverse.cli import main; main()", "index", str(pages), "--source",
               "--base-url", "https://docs.example.org/", "--store", f"edge:{store}", *exclude]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _print(title: str, rows: Sequence[Mapping[str, Any]], store: Path, model: str) -> None:
    services = [Service.open(Settings(store=f"edge:{store}", reading_model=name)) for name in ("none", model)]
    totals: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        found = [service.retrieve(RetrievalRequest(query=row["question"], top_k=20)) for service in services]
        plain, read = ([chunk.chunk_id for chunk in answer.retrieved_chunks] for answer in found)
        totals["same order"].append(plain == read)
        totals["read"].append(found[1].ranking_algorithm.endswith("+ reading"))
        for name, answer in zip(("without", "with"), found, strict=True):
            for count in FIRST:
                first = answer.retrieved_chunks[:count]
                totals[f"{name}: page@{count}"].append(any(_is_right(row, chunk, page_only=True) for chunk in first))
                totals[f"{name}: section@{count}"].append(any(_is_right(row, chunk) for chunk in first))
    print(f"{title}, {len(rows)} questions")
    for name, values in totals.items():
        print(f"  {name:22} {sum(values) / len(values):.2f}")


def _is_right(row: Mapping[str, Any], chunk: RetrievedChunk, *, page_only: bool = False) -> bool:
    page = _SUFFIX.sub("", chunk.source_file_path).removeprefix(f"{row['language']}/")
    headings = {_plain(heading) for heading in (*chunk.heading_path[-1:], chunk.section_heading) if heading}
    return any(page == gold["page"] and (page_only or _plain(gold["heading"]) in headings) for gold in row["gold"])


def _plain(heading: str) -> str:
    return _MARKS.sub("", heading).strip().lower()


if __name__ == "__main__":
    main()
