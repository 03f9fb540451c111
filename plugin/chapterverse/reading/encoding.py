"""Makes the model's input: a question and a passage, one behind the other, as numbers of tokens.

    [CLS] question [SEP] heading path, parts of the text [SEP]

A part is what may be marked as the answer: a sentence, an item, a row, a block of code. Addresses of links and tags of
HTML say nothing of what a passage means, so they are left out. Tokens are those of an uncased BERT model (WordPiece; Wu
et al., 2016, arXiv 1609.08144). The library `tokenizers` would make them too, but it brings a client of a model hub,
and readers' machines need neither.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

#: The most tokens of a pair, a question, a heading path and a part. `training/train.py` trains with these.
MAX_PAIR_TOKENS, MAX_QUESTION_TOKENS, _MAX_PATH_TOKENS, _MAX_PART_TOKENS = 192, 48, 32, 160
#: Characters of a heading path that are read, its last ones, and of a question and a part.
_MAX_PATH_CHARS, _MAX_TEXT_CHARS = 200, 2000
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)")
_TAG = re.compile(r"<[^<>]{1,200}>")
#: Ideographs are words of their own.
_IDEOGRAPH = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
#: Longer words are unknown. It keeps the search for a word's pieces short.
_MAX_WORD_CHARS = 100
#: Words whose pieces are kept.
_MAX_CACHED_WORDS = 65_536


class EncodedPassage(NamedTuple):
    """A passage as numbers of tokens; `parts` has for each token the place of its part, -1 for the heading path."""

    ids: tuple[int, ...]
    parts: tuple[int, ...]


class EncodedPair(NamedTuple):
    """A question and a passage as numbers of tokens.

    Attributes:
        question_tokens: how many of them are of the question, with the marks around it.
        parts: for each token the place of its part in the passage, -1 for all others.
    """

    ids: tuple[int, ...]
    question_tokens: int
    parts: tuple[int, ...]


class WordPiece:
    """A vocabulary of whole words, beginnings of words and their continuations, which are written with `##` before.

    Args:
        vocabulary: the tokens; the place of each is its number.

    Attributes:
        numbers: of each token.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.numbers = {token: number for number, token in enumerate(vocabulary)}
        self._unknown = [self.numbers["[UNK]"]]
        self._pieces = lru_cache(_MAX_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, without the marks of a beginning and an end."""
        text = text.lower()
        if not text.isascii():
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
            text = _IDEOGRAPH.sub(r" \1 ", text)
        return [number for word in _WORD.findall(text) for number in self._pieces(word)]

    def _split(self, word: str) -> list[int]:
        """Return the longest known beginning, then the longest continuation, and so on."""
        if len(word) > _MAX_WORD_CHARS:
            return self._unknown
        numbers, start = [], 0
        while start < len(word):
            end = len(word)
            while (number := self.numbers.get(f"##{word[start:end]}" if start else word[:end])) is None:
                end -= 1
                if end == start:
                    return self._unknown
            numbers.append(number)
            start = end
        return numbers


class PairEncoder:
    """Encodes pairs with one vocabulary."""

    def __init__(self, words: WordPiece) -> None:
        self._words = words
        self._begin, self._end = words.numbers["[CLS]"], words.numbers["[SEP]"]

    def question(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a question; what is beyond `MAX_QUESTION_TOKENS` is not read."""
        return tuple(self._words.encode(text[:_MAX_TEXT_CHARS])[:MAX_QUESTION_TOKENS])

    def passage(self, path: Iterable[str], parts: Iterable[str]) -> EncodedPassage:
        """Return the tokens of a passage, at most `MAX_PAIR_TOKENS`.

        Args:
            path: its headings, from the page's title down.
            parts: Markdown.
        """
        ids = self._words.encode(" > ".join(path)[-_MAX_PATH_CHARS:])[:_MAX_PATH_TOKENS]
        places = [-1] * len(ids)
        for place, part in enumerate(parts):
            if len(ids) >= MAX_PAIR_TOKENS:
                break
            tokens = self._words.encode(readable(part[:_MAX_TEXT_CHARS]))[:_MAX_PART_TOKENS]
            ids += tokens
            places += [place] * len(tokens)
        return EncodedPassage(tuple(ids[:MAX_PAIR_TOKENS]), tuple(places[:MAX_PAIR_TOKENS]))

    def pair(self, question: Sequence[int], passage: EncodedPassage) -> EncodedPair:
        """Return the tokens of both, at most `MAX_PAIR_TOKENS`."""
        room = MAX_PAIR_TOKENS - 3 - len(question)
        ids, parts = passage.ids[:room], passage.parts[:room]
        before = len(question) + 2
        return EncodedPair((self._begin, *question, self._end, *ids, self._end), before, (*[-1] * before, *parts, -1))

    def text(self, path: Iterable[str], text: str) -> tuple[int, ...]:
        """Return the tokens of a text by itself, for its vector."""
        ids = self.passage(path, (text,)).ids if path else self.question(text)
        return (self._begin, *ids[: MAX_PAIR_TOKENS - 2], self._end)


def readable(markdown: str) -> str:
    """Return the text of Markdown without the addresses of its links and without tags of HTML."""
    return _TAG.sub(" ", _LINK.sub(r"\1", markdown))
