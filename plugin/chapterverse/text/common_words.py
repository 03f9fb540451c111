"""Tells whether a word is a common one, by a Bloom filter of 14 kB (Bloom, 1970).

The words have four letters or more and are one token among the first 50,000 of cl100k: words that are merged so early
are frequent on the web, mostly in English. The filter takes one other word in a hundred for a common one.
`scripts/common_words.py` writes the filter, and a test compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

#: Bits of the filter and bits set by each word.
_BITS, _HASHES = 114_688, 7


def is_common(word: str) -> bool:
    """Return whether a lower-case word is common."""
    bits = _filter()
    return all(bits[at >> 3] & 1 << (at & 7) for at in _places(word))


def made_of(words: Iterable[str]) -> bytes:
    """Return the filter of some words."""
    bits = bytearray(_BITS // 8)
    for word in words:
        for at in _places(word):
            bits[at >> 3] |= 1 << (at & 7)
    return bytes(bits)


def frequent_words(ranks: Iterable[bytes], first: int = 50_000) -> Iterator[str]:
    """Yield the words among the first byte strings of a tokenizer that merges the most frequent ones first."""
    for _, token in zip(range(first), ranks, strict=False):
        word = token[1:].decode(errors="replace")
        if token[:1] == b" " and len(word) >= 4 and word.isalpha() and word.islower():
            yield word


def _places(word: str) -> Iterator[int]:
    digest = hashlib.sha256(word.encode()).digest()
    for at in range(0, 4 * _HASHES, 4):
        yield int.from_bytes(digest[at : at + 4]) % _BITS


@cache
def _filter() -> bytes:
    return files("chapterverse.text").joinpath("common_words.bin").read_bytes()
