"""Compares the questions of curated answers with each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from chapterverse.model import Chunk


def repeated_questions(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yield a warning for each question that two entries claim."""
    first: dict[tuple[str, str, str], Chunk] = {}
    for chunk in sorted(chunks, key=lambda c: (c.source_file_path, c.chunk_index)):
        other = first.setdefault((comparable(chunk.section_heading or ""), chunk.language, chunk.scope), chunk)
        # One entry may be cut into several chunks.
        if (other.source_file_path, other.heading_path) != (chunk.source_file_path, chunk.heading_path):
            files = f"{other.source_file_path} and {chunk.source_file_path}"
            yield f"{files} both answer the question “{chunk.section_heading}”: keep one."


def comparable(question: str) -> str:
    """Return a question's words alone, in lower case: two questions with the same ones are one."""
    return " ".join(re.findall(r"\w+", question.casefold()))


def place_without_page(file_path: str, question: str | None) -> str:
    """Return the address by which an evaluation names an entry that names no page: FILE#QUESTION."""
    return f"{file_path}#{question or ''}"


def entry_id(chunk: Chunk) -> str:
    """Return the id under which it is kept that an entry answered: 64 digits, the same after its answer was edited."""
    parts = (chunk.version, chunk.language, chunk.source_file_path, comparable(chunk.section_heading or ""))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
