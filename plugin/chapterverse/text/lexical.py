"""Code-aware terms, and sparse vectors made of them.

A document vector holds BM25 term weights (Robertson & Zaragoza, "The Probabilistic Relevance Framework", 2009) with a
fixed average length, so it depends on its chunk alone and never changes. The store applies the inverse document
frequency. Terms are hashed to 32 bits, so there is no vocabulary to synchronize.

Identifiers are indexed whole and in parts (`navigation.instant`, `fooBar`, `--dry-run`), because questions use both. So
are German compounds, and words of scripts without spaces.
"""

from __future__ import annotations

import functools
import importlib
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from chapterverse.model import SparseVector
from chapterverse.text import segmentation
from chapterverse.text.stopwords import QUESTION_STOP_WORDS, STOP_WORDS

#: BM25's saturation and length normalization. k1 = 2 measured best; both change results little.
K1 = 2.0
B = 0.75
#: The fixed average length of a chunk in terms, near the mean of 256-token chunks.
AVERAGE_LENGTH = 160.0
#: Longest token whose terms are cached, in characters.
_MAX_CACHED_CHARS = 64

# Combining marks that `\w` excludes: without them "हिन्दी" would be three words.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e"
# A run of letters and digits with the joiners of identifiers: paths, options, dotted names, C++.
_WORD = re.compile(rf"[\w{_MARKS}]+(?:[.:/@'’-]{{1,3}}[\w{_MARKS}]+)*(?:\+\+|#)?")
_JOINER = re.compile(rf"[^\w{_MARKS}]+|_+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
# Full-width letters and digits, and half-width kana.
_WIDTHS = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc]+")
# French and Italian clitics: "l'index", "dell'indice", "puis-je", "a-t-il".
_CLITICS = {
    "fr": re.compile(
        r"^(?:qu|jusqu|lorsqu|puisqu|quoiqu|[cdjlmnst])['’](?=\w)"
        r"|(?:-t)?-(?:je|tu|ils?|elles?|nous|vous|ce|ci|là|moi|toi|lui|leur|les?|la|y)$|(?<=t)-on$",
        re.IGNORECASE,
    ),
    "it": re.compile(r"^(?:un|all|dall|dell|nell|sull|coll|quell|quest|com|dov|[cdlmnstv])['’](?=\w)", re.IGNORECASE),
}
# Languages whose stemmers need accents that readers omit: "donnees" should find "données".
_ACCENTED = frozenset({"es", "fr", "it", "pt"})

#: The rules of Snowball for each language that words are stemmed in; `scripts/package.py` packs these alone.
STEMMERS = {
    "da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french",
    "it": "italian", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip

#: The least share of a page's words that are function words of its language, a third of what prose has, and by how much
#: they must outnumber those of the next language.
_LEAST_SHARE, _LEAST_MARGIN = 0.1, 1.25

#: Languages that are recognized by their function words or signs.
LANGUAGES = (*STOP_WORDS, *segmentation.SIGNS)

#: The hashed terms of one word: of an identifier or a compound the whole first, then its parts; most words have one.
WordTerms: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a question or text, with its terms.

    Attributes:
        surface: as written, in lower case.
    """

    surface: str
    terms: WordTerms


def primary_subtag(tag: str) -> str:
    """Return the language of a BCP 47 tag without its script or region: "pt" of "pt-BR"."""
    return tag.partition("-")[0].lower()


def words(text: str, language: str = "en") -> Iterator[Word]:
    """Yield the words of `text` in order, without the function words of its language."""
    code = primary_subtag(language)
    return _read(text, code, code)


def question_words(text: str, languages: Iterable[str]) -> Iterator[Word]:
    """Yield the words of a question by the rules of each language of an index, without the question's own function
    words.

    The question's language is the one with most of its function words. Removing the function words of every language
    would lose words. Removing each language's only by its own rules would keep German "die" as a rare English verb.
    """
    codes = tuple(dict.fromkeys(map(primary_subtag, languages)))
    language = question_language(text, codes)
    typed = QUESTION_STOP_WORDS.get(language, frozenset())
    for code in codes:
        for word in _read(text, code, language):
            if word.surface not in typed:
                yield word


def terms_of(words: Iterable[Word]) -> frozenset[int]:
    """Return the hashed terms of these words."""
    return frozenset(term for word in words for term in word.terms)


def question_language(text: str, languages: Iterable[str]) -> str:
    """Return the language of a question to an index of these languages; "" of none.

    Where nothing tells, it is English if that is one of them: names and technical words mostly are.
    """
    codes = tuple(dict.fromkeys(map(primary_subtag, languages)))
    if len(codes) == 1:
        return codes[0]
    return language_of(text, codes) or ("en" if "en" in codes else next(iter(codes), ""))


def stemmed_tokens(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a text in lower case, with its stem. A function word is its own stem, and so is what is no
    plain word, such as an identifier.
    """
    function_words = STOP_WORDS.get(language, frozenset())
    for token in _WORD.findall(_normal(text)):
        surface = token.lower().replace("’", "'")
        plain = surface.isalpha() and surface not in function_words
        yield surface, stem(surface, language) if plain else surface


def hash_term(term: str) -> int:
    """Return the index of a term in a sparse vector: its CRC-32."""
    return zlib.crc32(term.encode())


def language_of(text: str, languages: Iterable[str]) -> str | None:
    """Return the language with most of its function words in a text; None if two have as many, or none has any."""
    signs = _count_signs(text, [token.lower() for token in _WORD.findall(_normal(text))], languages)
    most = max(signs.values(), default=0)
    likeliest = [code for code, count in signs.items() if count == most]
    return likeliest[0] if most and len(likeliest) == 1 else None


def prose_language(text: str, languages: Iterable[str]) -> str | None:
    """Return the language that a text of a page is written in; None if its function words don't tell.

    They tell where they are a share of the words, and where the next language has clearly fewer. Single letters are
    names in code and formulas: "T" is no French "t".
    """
    tokens = [token.lower() for token in _WORD.findall(_normal(text)) if len(token) > 1]
    signs = _count_signs(text, tokens, languages)
    likeliest = sorted(signs, key=lambda code: -signs[code])[:2]
    most, next_most = (signs[code] for code in likeliest)
    is_clear = most >= _LEAST_SHARE * len(tokens) and most >= _LEAST_MARGIN * next_most
    return likeliest[0] if most and is_clear else None


def document_vector(path: Sequence[str], text: str, language: str = "en", expansion: str = "") -> SparseVector:
    """Return the BM25 weights of a chunk: its heading path, its text and its expansion in one bag of words.

    Headings count like text but don't add to its length. Counting them twice finds less: .766 of the sections of ray-v1
    are among the first fifty then, instead of .800.
    """
    counts: Counter[int] = Counter()
    for word in words(text, language):
        counts.update(word.terms)
    length = counts.total()
    for more in dict.fromkeys((*path, *expansion.split("\n"))):
        for word in words(more, language):
            counts.update(word.terms)
    norm = K1 * (1 - B + B * length / AVERAGE_LENGTH)
    return _vector({term: tf * (K1 + 1) / (tf + norm) for term, tf in counts.items()})


def query_vector(text: str, languages: Iterable[str] = ("en",)) -> SparseVector:
    """Return weight 1 for each distinct term of a question, by the rules of every language of the index."""
    return _vector(dict.fromkeys(terms_of(question_words(text, languages)), 1.0))


def _vector(weights: dict[int, float]) -> SparseVector:
    ordered = sorted(weights.items())
    return SparseVector(tuple(t for t, _ in ordered), tuple(w for _, w in ordered))


def _read(text: str, stemming: str, language: str) -> Iterator[Word]:
    """Yield the words of a text without the function words of `language`, stemmed by the rules of `stemming`."""
    for token in _WORD.findall(_normal(text)):
        if token.isascii():
            if word := _plain(token, stemming, language):
                yield word
        else:
            yield from _split_mixed(token, stemming, language)


def _normal(text: str) -> str:
    if text.isascii():
        return text
    return _WIDTHS.sub(lambda wide: unicodedata.normalize("NFKC", wide.group()), unicodedata.normalize("NFC", text))


def _count_signs(text: str, tokens: Sequence[str], languages: Iterable[str]) -> dict[str, int]:
    """Count for each language the signs that a text of these tokens is in it: function words, or characters."""
    counts = {}
    for code in map(primary_subtag, languages):
        words = QUESTION_STOP_WORDS.get(code, frozenset())
        signs = segmentation.SIGNS.get(code)
        counts[code] = len(signs.findall(text)) if signs else sum(map(words.__contains__, tokens))
    return counts


def _split_mixed(token: str, stemming: str, language: str) -> Iterator[Word]:
    """Yield the words of a token in scripts with spaces, without, or both."""
    for position, run in enumerate(segmentation.RUN.split(token)):
        if position % 2:
            for word in segmentation.bigram_words(run, language):
                yield Word(word[0], tuple(map(hash_term, word)))
        elif run and (plain := _plain(run, stemming, language)):
            yield plain


def _plain(token: str, stemming: str, language: str) -> Word | None:
    # Long tokens seldom recur and would only fill the cache.
    return (_word if len(token) <= _MAX_CACHED_CHARS else _word.__wrapped__)(token, stemming, language)


@functools.lru_cache(maxsize=65_536)
def _word(token: str, stemming: str, language: str) -> Word | None:
    terms = _terms(token.strip("_"), stemming, language)
    return Word(token.lower(), terms) if terms else None


def _terms(token: str, stemming: str, language: str) -> WordTerms:
    """Return the hashed terms of one token; empty for a function word."""
    stop_words = STOP_WORDS.get(language, frozenset())
    if language in _CLITICS:
        token = _CLITICS[language].sub("", token)
    lower = token.lower().replace("’", "'")
    if lower in stop_words:
        return ()
    parts = [p for piece in _JOINER.split(token) for p in _CAMEL.split(piece) if p]
    if not parts:
        return ()
    # "C++" and "F#" are names, not a "c" or an "f" with a sign.
    if len(parts) == 1 and (parts[0] == token or len(parts[0]) == 1):
        return tuple(map(hash_term, _forms(lower, stemming)))
    words = [p.lower() for p in parts if p.lower() not in stop_words]
    # "don't" is not an identifier: only its meaningful part counts.
    if "'" in lower and not any(c in lower for c in "._:/@-"):
        return tuple(map(hash_term, next((_forms(p, stemming) for p in words if len(p) > 1), ())))
    return tuple(map(hash_term, dict.fromkeys((lower, *(form for p in words for form in _forms(p, stemming))))))


def _forms(word: str, language: str) -> tuple[str, ...]:
    """Return the stem of a word and of its other forms."""
    forms = [word]
    if language == "de":
        forms += segmentation.divide(word)
    if language in _ACCENTED:
        forms.append(_bare(word))
    return tuple(dict.fromkeys(stem(w, language) for w in forms))


@functools.lru_cache(maxsize=16_384)
def stem(word: str, language: str) -> str:
    """Return the stem of one lower-case word, without accents."""
    name = STEMMERS.get(language)
    stemmed = _stemmer(name)().stemWord(word) if name and not word.isdigit() else word
    # Remove accents last, because stemmers need them and readers omit them.
    return _bare(stemmed)


def _bare(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@functools.cache
def _stemmer(name: str) -> Any:
    """Return the class of one language's stemmer. Its objects are not thread-safe.

    The index holds stems, so they are those of snowballstemmer's own modules, also where PyStemmer is installed.
    """
    # Lazy: it loads its forty languages, in 26 ms, outside of our package for Lambda.
    module = importlib.import_module(f"snowballstemmer.{name}_stemmer")
    return getattr(module, f"{name.capitalize()}Stemmer")
