"""Writes the filter of common words, `plugin/chapterverse/text/common_words.bin`, from the ranks of cl100k."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from chapterverse.text import stopwords
from chapterverse.text.tokens import load_ranks

FILE = Path(stopwords.__file__).with_name("common_words.bin")


def bloom_filter(words: Iterable[str]) -> bytes:
    bits = bytearray(stopwords.FILTER_BITS // 8)
    for word in words:
        for at in stopwords.bits_of(word):
            bits[at >> 3] |= 1 << (at & 7)
    return bytes(bits)


def frequent_words(ranks: Iterable[bytes]) -> Iterator[str]:
    """Yield the words among the first byte strings of a tokenizer that merges the most frequent ones first."""
    for _, token in zip(range(50_000), ranks, strict=False):
        word = token[1:].decode(errors="replace")
        if token[:1] == b" " and len(word) >= 4 and word.isalpha() and word.islower():
            yield word


if __name__ == "__main__":
    FILE.write_bytes(bloom_filter(frequent_words(load_ranks())))
