"""Compares the questions of curated answers with each other."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from chapterverse.model import Chunk


def repeated_questions(chunks: Iterable[Chunk], *, chunk_is_entry: bool) -> Iterator[str]:
    """Yield a warning for each question that two entries claim.

    Args:
        chunk_is_entry: whether each chunk is an entry; else one entry may be cut into several chunks.
    """
    entries: defaultdict[tuple[str, str, str], dict[object, tuple[str, str | None]]] = defaultdict(dict)
    for chunk in sorted(chunks, key=lambda c: (c.source_file_path, c.chunk_index)):
        place = chunk.chunk_id if chunk_is_entry else (chunk.source_file_path, chunk.heading_path)
        question = comparable(chunk.section_heading or ""), chunk.language, chunk.scope
        entries[question].setdefault(place, (chunk.source_file_path, chunk.section_heading))
    for of_question in entries.values():
        if len(of_question) > 1:
            first, *other_entries = of_question.values()
            other = next((entry for entry in other_entries if entry[0] != first[0]), first)
            if other == first:
                yield f"{first[0]} answers the question “{first[1]}” more than once: keep one answer."
            else:
                yield f"{first[0]} and {other[0]} both answer the question “{other[1]}”: keep one."


def comparable(question: str) -> str:
    """Return a question's words alone, in lower case: two questions with the same ones are one."""
    return " ".join(re.findall(r"\w+", question.casefold()))


def entry_id(chunk: Chunk) -> str:
    """Return the id under which it is kept that an entry answered: 64 digits, the same after its answer was edited."""
    parts = (chunk.version, chunk.language, chunk.source_file_path, comparable(chunk.section_heading or ""))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
