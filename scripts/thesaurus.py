"""Compiles the entries of `benchmarks/thesaurus` to `plugin/chapterverse/text/thesaurus.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chapterverse.text import thesaurus

ENTRIES = Path(__file__).parents[1] / "benchmarks" / "thesaurus"


def rows() -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of all files: an expression, and what documentation says for it."""
    for file in sorted(ENTRIES.glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines():
            expression, _, synonyms = line.partition("\t")
            yield expression, synonyms.split(", ")


if __name__ == "__main__":
    target = Path(thesaurus.__file__).with_name("thesaurus.txt")
    target.write_text(thesaurus.compile_rows(rows()), encoding="utf-8")
