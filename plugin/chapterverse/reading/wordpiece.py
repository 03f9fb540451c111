"""Splits text into the tokens of an uncased BERT model (WordPiece; Wu et al., 2016, arXiv 1609.08144).

The library `tokenizers` would do it too, but it brings a client of a model hub, and readers' machines need neither.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

#: Ideographs are words of their own.
_IDEOGRAPH = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
#: Longer words are unknown. It keeps the search for a word's pieces short.
_MAX_WORD_CHARS = 100
#: Words whose pieces are kept.
_MAX_CACHED_WORDS = 65_536
_UNKNOWN = "[UNK]"


class WordPiece:
    """A vocabulary of whole words, beginnings of words and their continuations, which are written with `##` before.

    Args:
        vocabulary: the tokens; the place of each is its number.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {token: number for number, token in enumerate(vocabulary)}
        self._unknown = [self._numbers[_UNKNOWN]]
        self._pieces = lru_cache(_MAX_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, without the marks of a beginning and an end."""
        text = text.lower()
        if not text.isascii():
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
            text = _IDEOGRAPH.sub(r" \1 ", text)
        return [number for word in _WORD.findall(text) for number in self._pieces(word)]

    def number(self, token: str) -> int:
        """Return the number of a token.

        Raises:
            KeyError: the vocabulary has no such token.
        """
        return self._numbers[token]

    def _split(self, word: str) -> list[int]:
        """Return the longest known beginning, then the longest continuation, and so on."""
        if len(word) > _MAX_WORD_CHARS:
            return self._unknown
        numbers, start = [], 0
        while start < len(word):
            end = len(word)
            while (number := self._numbers.get(f"##{word[start:end]}" if start else word[:end])) is None:
                end -= 1
                if end == start:
                    return self._unknown
            numbers.append(number)
            start = end
        return numbers
