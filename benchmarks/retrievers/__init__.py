"""The retrievers that `retrieval.py` compares: one protocol, ours and each peer beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from scoring import Result

#: Results that each retriever is asked for.
DEPTH = 20
#: Where a peer doesn't cut pages itself: what makes chunks of a folder of them, and what its name then ends in.
Chunker = Callable[[Path], Sequence[Result]]
OUR_CHUNKS = ", our chunks"
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


class Index(Protocol):
    def search(self, question: str) -> Sequence[Result]:
        """Return up to `DEPTH` results, best first."""
        ...

    def size(self) -> int:
        """Return the bytes of the index as it is kept on disk."""
        ...


class Retriever(Protocol):
    name: str

    def index(self, pages: Path, folder: Path) -> Index:
        """Index the Markdown below `pages`; what needs a place on disk goes into `folder`, which is empty."""
        ...


def on_disk(folder: Path) -> int:
    """Return the bytes that a folder takes on disk; holes in its files take none."""
    return sum(512 * path.lstat().st_blocks for path in folder.rglob("*") if path.is_file())


def markdown_files(pages: Path) -> Iterator[tuple[str, str]]:
    """Yield path and content of the Markdown and MDX files, in order."""
    for file in sorted(pages.rglob("*")):
        if file.suffix in (".md", ".mdx"):
            yield file.relative_to(pages).as_posix(), file.read_text("utf-8")


def headed(page: str, text: str, *path: str) -> Result:
    """Return a peer's chunk as a result: to stand under a heading counts whether the path or the text says so."""
    return Result(page, text, (*path, *_HEADING.findall(text)))
