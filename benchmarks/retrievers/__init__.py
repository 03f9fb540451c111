"""The retrievers that `retrieval.py` compares: one protocol, ours and each peer beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from scoring import Result

#: Results requested from each retriever.
DEPTH = 20
#: Chunks a folder of pages for a peer that doesn't, and the suffix of that peer's name.
Chunker = Callable[[Path], Sequence[Result]]
OUR_CHUNKS = ", our chunks"
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


class Index(Protocol):
    def search(self, question: str) -> Sequence[Result]:
        """Return up to `DEPTH` results, best first."""
        ...

    def size(self) -> int:
        """Return the bytes of the index on disk."""
        ...


class Retriever(Protocol):
    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    def index(self, pages: Path, folder: Path) -> Index:
        """Index the Markdown below `pages`; `folder` is empty and for files of the index."""
        ...


def on_disk(folder: Path) -> int:
    """Return the disk usage of a folder in bytes, without holes in files."""
    return sum(512 * path.lstat().st_blocks for path in folder.rglob("*") if path.is_file())


def markdown_files(pages: Path) -> Iterator[tuple[str, str]]:
    """Yield path and content of the Markdown and MDX files, in order."""
    for file in sorted(pages.rglob("*")):
        if file.suffix in (".md", ".mdx"):
            yield file.relative_to(pages).as_posix(), file.read_text("utf-8")


def headed(page: str, text: str, *path: str) -> Result:
    """Return a peer's chunk as a result, with the headings of both its path and its text."""
    return Result(page, text, (*path, *_HEADING.findall(text)))
