"""Words that documentation has for a reader's: "shrink" is "minify", "resize" or "reduce" there.

A reader who does not know a subject yet does not know its words, and a search by words finds only those that it is
given. A language model wrote the entries (`benchmarks/thesaurus`) from its own knowledge, for what readers want and for
words and headings that are frequent in public documentation. It knew neither our questions nor our code.
`scripts/thesaurus.py` compiles them to stems, and a test compares. They are English.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from chapterverse.text import lexical
from chapterverse.text.stopwords import STOP_WORDS

#: The language of the entries.
LANGUAGE = "en"
#: Words of the longest expression, function words included.
MAX_EXPRESSION_WORDS = 3
_FUNCTION_WORDS = STOP_WORDS[LANGUAGE]


class SynonymEntry(NamedTuple):
    """What documentation says for some words of a text.

    Attributes:
        words: the words in lower case, without function words.
        synonyms: stems.
    """

    words: tuple[str, ...]
    synonyms: tuple[str, ...]


def find_synonyms(text: str) -> Iterator[SynonymEntry]:
    """Yield the entries of the expressions in an English text.

    Those inside of a longer one count too ("shrink" of "shrink pictures"), unless it is an idiom: "log" means something
    else than "log in".
    """
    tokens, reached = list(lexical.stemmed_tokens(text, LANGUAGE)), 0
    for start in range(len(tokens)):
        for end in range(min(start + MAX_EXPRESSION_WORDS, len(tokens)), max(start, reached), -1):
            if synonyms := _synonyms(key_of(tokens[start:end])):
                words = tuple(word for word, _ in content(tokens[start:end]))
                yield SynonymEntry(words, tuple(synonyms.split(" ")))
                # An idiom has function words in it.
                if len(words) < end - start:
                    reached = end
                    break


def content(tokens: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Return the tokens that are no function words."""
    return (token for token in tokens if token[0] not in _FUNCTION_WORDS)


def key_of(tokens: Sequence[tuple[str, str]]) -> str:
    """Return what an expression of these tokens is found by: its stems."""
    return " ".join(stem for _, stem in tokens)


def _synonyms(key: str) -> str:
    """Return the synonyms of an expression, parted by spaces; "" of one that is not in the thesaurus."""
    lines, begins = _lines(), f"{key}\t"
    at = bisect_left(lines, begins)
    return lines[at].removeprefix(begins) if at < len(lines) and lines[at].startswith(begins) else ""


@cache
def _lines() -> list[str]:
    # Their order is that of the file. A mapping would take seven times as long to make, at each cold start.
    return files("chapterverse.text").joinpath("thesaurus.txt").read_text(encoding="utf-8").split("\n")
