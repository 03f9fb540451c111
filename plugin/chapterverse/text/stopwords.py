"""Function words by language, which a search ignores, and common words.

The lists hold only articles, pronouns, auxiliaries, conjunctions, prepositions and question words, never a noun or a
full verb: in documentation "first", "work" or "home" can be the topic of a question. A language without a list loses
little precision, because frequent terms weigh little anyway.

Whether a word is a common one is told by a Bloom filter of 14 kB (Bloom, 1970). Its words have four letters or more and
are one token among the first 50,000 of cl100k: words that are merged so early are frequent on the web, mostly in
English. The filter takes one other word in a hundred for a common one. `scripts/common_words.py` writes it, and a test
compares.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def _read_language(language: str) -> dict[str, str]:
    """Return the words in the file of a language by their kind, each kind of which is a line."""
    file = Path(__file__).parent / "languages" / f"{language}.txt"
    return dict(line.split(": ", 1) for line in file.read_text(encoding="utf-8").splitlines())


def read_words(language: str, kind: str) -> list[str]:
    """Return the words of one kind in a language."""
    return _read_language(language)[kind].split()


def _spell(words: list[str]) -> frozenset[str]:
    """Return the words as written, with umlauts typed as "ae", and without accents."""
    text = " ".join(words)
    plain = text.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return frozenset((*words, *plain.split(), *bare.split()))


STOP_WORDS = {
    language: _spell(read_words(language, "function")) for language in ("en", "de", "fr", "es", "it", "nl", "pt")
}

#: The function words of a question: also English contractions as readers type them, without an apostrophe. The terms of
#: documents keep them, since hardly any page has one, and no index has to be written again for them.
QUESTION_STOP_WORDS = {**STOP_WORDS, "en": STOP_WORDS["en"].union(read_words("en", "contractions"))}

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
    return Path(__file__).with_name("common_words.bin").read_bytes()
