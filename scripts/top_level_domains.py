"""Writes the last label of each public suffix to `ext/check/links/top_level_domains.txt`.

The public suffixes are those of the package `publicsuffixlist`, which `requirements/test.txt` pins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import publicsuffixlist

LIST = Path(publicsuffixlist.__file__).with_name("public_suffix_list.dat")
TARGET = Path(__file__).parents[1] / "lambda/chapterverse_api/ext/check/links/top_level_domains.txt"


def suffixes() -> Iterator[str]:
    """Yield the public suffixes in their order, without the marks of wildcards and exceptions."""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("//"):
            yield line.strip().removeprefix("!").removeprefix("*.")


def rows() -> str:
    """Return the last labels, one a line."""
    return "\n".join(sorted({suffix.rpartition(".")[2] for suffix in suffixes()})) + "\n"


if __name__ == "__main__":
    TARGET.write_text(rows(), encoding="utf-8")
