"""Words that documentation has for a reader's: "shrink" is "minify", "resize" or "reduce" there.

A reader who does not know a subject yet does not know its words, and a search by words finds only those that it is
given. A language model wrote the entries (`benchmarks/thesaurus`) from its own knowledge, for what readers want and for
words and headings that are frequent in public documentation. It knew neither our questions nor our code.
`scripts/thesaurus.py` compiles them to stems, and a test compares. They are English.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from chapterverse.text import lexical
from chapterverse.text.stopwords import STOP_WORDS

#: The language of the entries.
LANGUAGE = "en"
#: Words of the longest expression, function words included.
LONGEST = 3
#: Synonyms of an expression. With two to five of them the right page was equally often among the first five results of
#: 512 questions on nine sites.
MOST = 3
_FUNCTION_WORDS = STOP_WORDS[LANGUAGE]


class Entry(NamedTuple):
    """What documentation says for some words of a text.

    Attributes:
        words: the words in lower case, without function words.
        synonyms: stems.
    """

    words: tuple[str, ...]
    synonyms: tuple[str, ...]


def entries(text: str) -> Iterator[Entry]:
    """Yield the entries of the expressions in an English text, without those inside of longer ones."""
    tokens, known, reached = list(lexical.tokens(text, LANGUAGE)), _entries(), 0
    for start in range(len(tokens)):
        ends = range(min(start + LONGEST, len(tokens)), max(start, reached), -1)
        for end in ends:
            if synonyms := known.get(_key(tokens[start:end])):
                yield Entry(tuple(word for word, _ in _content(tokens[start:end])), tuple(synonyms.split(" ")))
                reached = end
                break


def compiled(rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return rows of an expression and its synonyms in compiled form, a line for each expression.

    A synonym of several words is left out: its words say less one by one. The synonyms that most rows name come first.
    """
    counts: dict[str, dict[str, int]] = {}
    for expression, synonyms in rows:
        tokens = list(lexical.tokens(expression, LANGUAGE))
        own = {stem for _, stem in _content(tokens)}
        if not own or len(tokens) > LONGEST:
            continue
        of_expression = counts.setdefault(_key(tokens), {})
        for synonym in synonyms:
            stems = [stem for _, stem in _content(list(lexical.tokens(synonym, LANGUAGE)))]
            if len(stems) == 1 and stems[0] not in own:
                of_expression[stems[0]] = of_expression.get(stems[0], 0) + 1
    ordered = ((key, sorted(found, key=lambda stem: -found[stem])[:MOST]) for key, found in sorted(counts.items()))
    return "".join(f"{key}\t{' '.join(stems)}\n" for key, stems in ordered if stems)


def _content(tokens: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return (token for token in tokens if token[0] not in _FUNCTION_WORDS)


def _key(tokens: Sequence[tuple[str, str]]) -> str:
    return " ".join(stem for _, stem in tokens)


@cache
def _entries() -> Mapping[str, str]:
    text = files("chapterverse.text").joinpath("thesaurus.txt").read_text(encoding="utf-8")
    return dict(line.split("\t") for line in text.splitlines())
