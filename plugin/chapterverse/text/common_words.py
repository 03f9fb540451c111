"""Tells whether a word is a common one, by a Bloom filter of 14 kB (Bloom, 1970).

The words have four letters or more and are one token among the first 50,000 of cl100k: words that are merged so early
are frequent on the web, mostly in English. The filter takes one other word in a hundred for a common one.
`scripts/common_words.py` writes the filter, and a test compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

#: Bits of the filter and bits set by each word.
FILTER_BITS, _HASHES = 114_688, 7


def is_common(word: str) -> bool:
    """Return whether a lower-case word is common."""
    bits = _filter()
    return all(bits[at >> 3] & 1 << (at & 7) for at in bits_of(word))


def bits_of(word: str) -> Iterator[int]:
    """Yield the numbers of the bits that a word sets."""
    digest = hashlib.sha256(word.encode()).digest()
    for at in range(0, 4 * _HASHES, 4):
        yield int.from_bytes(digest[at : at + 4]) % FILTER_BITS


@cache
def _filter() -> bytes:
    return files("chapterverse.text").joinpath("common_words.bin").read_bytes()
