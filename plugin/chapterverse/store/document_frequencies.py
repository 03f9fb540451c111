"""In how many chunks each term occurs, in one file beside a shard: what the engine knows and doesn't tell."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from chapterverse.errors import IndexCorrupt


class Terms:
    """Document frequencies as two sorted arrays: 8 bytes a term on disk, one binary search to look one up."""

    def __init__(self, terms: array[int], counts: array[int]) -> None:
        self._terms = terms
        self._counts = counts

    @classmethod
    def empty(cls) -> Terms:
        return cls(array("I"), array("I"))

    @classmethod
    def load(cls, path: Path) -> Terms:
        """Read them. Raises `IndexCorrupt` if the file is damaged."""
        both = array("I")
        raw = path.read_bytes()
        if len(raw) % (2 * both.itemsize):
            raise IndexCorrupt(f"{path} is damaged: remove the index and build it again.")
        both.frombytes(raw)
        half = len(both) // 2
        return cls(both[:half], both[half:])

    def save(self, path: Path) -> None:
        path.write_bytes(self._terms.tobytes() + self._counts.tobytes())

    def changed(self, added: Counter[int]) -> Terms:
        """Return them with these numbers of chunks added, which may be negative."""
        counts = Counter(dict(zip(self._terms, self._counts, strict=True)))
        counts.update(added)
        kept = sorted((term, count) for term, count in counts.items() if count)
        return Terms(array("I", (t for t, _ in kept)), array("I", (c for _, c in kept)))

    def counts(self, terms: Iterable[int]) -> list[int]:
        return [self._count(term) for term in terms]

    def _count(self, term: int) -> int:
        at = bisect_left(self._terms, term)
        return self._counts[at] if at < len(self._terms) and self._terms[at] == term else 0
