"""Code-aware terms and the sparse vectors made of them.

A document's vector holds BM25 term weights (Robertson & Zaragoza, "The Probabilistic Relevance Framework", 2009) with
a fixed average length, so that it depends on that chunk alone and is as immutable as the chunk; the inverse document
frequency is the store's. Terms are hashed to 32 bits, so there is no vocabulary to keep in step.

Identifiers are indexed whole and in parts (`navigation.instant`, `fooBar`, `--dry-run`): questions use either form.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from chapterverse.model import SparseVector
from chapterverse.stopwords import STOP_WORDS

#: Changes when the same text gives other vectors; an index made by another encoder is written anew.
ENCODER = "terms/1"
#: BM25's saturation and length normalization; k1 = 2 measured best, both move the result little (research).
K1 = 2.0
B = 0.75
#: The fixed "average" length of a chunk in terms, near the mean of 256-token chunks.
AVERAGE_LENGTH = 160.0
#: Characters up to which a token's terms are remembered.
_CACHED_LENGTH = 64
#: How much more a term in the heading path counts than one in the text.
PATH_WEIGHT = 2.0

# A run of letters and digits, with the joiners that hold identifiers together: paths, options, dotted names, C++.
_WORD = re.compile(r"\w+(?:[.:/@'’-]{1,3}\w+)*(?:\+\+|#)?")
_JOINER = re.compile(r"[^\w]+|_+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
# Han, kana and hangul are written without spaces: two characters at a time are their words.
_CJK = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")

_STEMMERS = {
    "da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french",
    "it": "italian", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a question or text and the terms it is found by.

    Attributes:
        terms: hashed; for an identifier first the whole, then its parts; for anything else just one.
        surface: as it was written, in lower case.
    """

    surface: str
    terms: tuple[int, ...]


def words(text: str, language: str = "en") -> Iterator[Word]:
    """Yield the words of `text` that carry meaning, in order; function words of the language are left out."""
    code = language.partition("-")[0].lower()
    for match in _WORD.finditer(unicodedata.normalize("NFC", text)):
        for run in _split_cjk(match.group()):
            word = _cjk(run) if _CJK.match(run) else _plain(run, code)
            yield from word


def document_vector(path: Sequence[str], text: str, language: str = "en") -> SparseVector:
    """Return the BM25 weights of a chunk: its heading path and its text in one bag."""
    counts: Counter[int] = Counter()
    for word in words(text, language):
        counts.update(word.terms)
    length = counts.total()
    for heading in dict.fromkeys(path):
        for word in words(heading, language):
            for term in word.terms:
                counts[term] += PATH_WEIGHT  # type: ignore[assignment]
    norm = K1 * (1 - B + B * length / AVERAGE_LENGTH)
    return _vector({term: tf * (K1 + 1) / (tf + norm) for term, tf in counts.items()})


def query_vector(text: str, languages: Iterable[str] = ("en",)) -> SparseVector:
    """Return the weights of a question: each distinct term once, read by the rules of every language of the index."""
    weights: dict[int, float] = {}
    for language in languages:
        for word in words(text, language):
            for term in word.terms:
                weights[term] = 1.0
    return _vector(weights)


def _vector(weights: dict[int, float]) -> SparseVector:
    ordered = sorted(weights.items())
    return SparseVector(tuple(t for t, _ in ordered), tuple(w for _, w in ordered))


def _split_cjk(token: str) -> Iterator[str]:
    at = 0
    for match in _CJK.finditer(token):
        if match.start() > at:
            yield token[at : match.start()]
        yield match.group()
        at = match.end()
    if at < len(token):
        yield token[at:]


def _cjk(run: str) -> Iterator[Word]:
    if len(run) == 1:
        yield Word(run, (_hash(run),))
    for i in range(len(run) - 1):
        yield Word(run[i : i + 2], (_hash(run[i : i + 2]),))


def _plain(token: str, language: str) -> Iterator[Word]:
    bare = token.strip("_")
    # A long run of letters is no word that comes again: it would only fill the cache.
    terms = _terms(bare, language) if len(bare) <= _CACHED_LENGTH else _terms.__wrapped__(bare, language)
    if terms:
        yield Word(token.lower(), terms)


@functools.lru_cache(maxsize=65_536)
def _terms(token: str, language: str) -> tuple[int, ...]:
    """Return the hashed terms of one token; nothing for a function word."""
    lower = token.lower().replace("’", "'")
    if lower in STOP_WORDS.get(language, ()):
        return ()
    parts = [p for piece in _JOINER.split(token) for p in _CAMEL.split(piece) if p]
    if not parts:
        return ()
    # "C++" and "F#" are names of their own, not something about a "c" or an "f".
    if len(parts) == 1 and (parts[0] == token or len(parts[0]) == 1):
        return (_hash(_stem(lower, language)),)
    # "don't" and "l'index" are words, not identifiers: only the part that carries meaning counts.
    if "'" in lower and not any(c in lower for c in "._:/@-"):
        kept = [p for p in parts if len(p) > 1 and p.lower() not in STOP_WORDS.get(language, ())]
        return (_hash(_stem(kept[0].lower(), language)),) if kept else ()
    stemmed = [_hash(_stem(p.lower(), language)) for p in parts if p.lower() not in STOP_WORDS.get(language, ())]
    return tuple(dict.fromkeys((_hash(lower), *stemmed)))


def _stem(word: str, language: str) -> str:
    name = _STEMMERS.get(language)
    stemmed = _stemmer(name)().stemWord(word) if name and not word.isdigit() else word
    # Accents last: stemmers need them, and readers leave them out.
    return "".join(c for c in unicodedata.normalize("NFKD", stemmed) if not unicodedata.combining(c))


@functools.cache
def _stemmer(name: str) -> Any:
    """Return the class of one language's stemmer; its objects hold the word at work, so no two threads may share one.

    Importing snowballstemmer loads all of its forty languages (0.1 s before the first question) or, where PyStemmer is
    installed, that one's own version of the rules. So its modules are imported one by one, under a package of ours.
    """
    alias = f"{__name__}_stemmers"
    if alias not in sys.modules:
        package = ModuleType(alias)
        spec = importlib.util.find_spec("snowballstemmer")
        package.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        sys.modules[alias] = package
    return getattr(importlib.import_module(f"{alias}.{name}_stemmer"), f"{name.capitalize()}Stemmer")


def _hash(term: str) -> int:
    return zlib.crc32(term.encode())
