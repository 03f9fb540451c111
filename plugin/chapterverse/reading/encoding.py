"""Makes the model's input: a question and a passage, one behind the other, as numbers of tokens.

    [CLS] question [SEP] heading path, parts of the text [SEP]

A part is what may be marked as the answer: a sentence, an item, a row, a block of code. Addresses of links and tags of
HTML say nothing of what a passage means, so they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chapterverse.reading.wordpiece import WordPiece

#: The most tokens of a pair, a question, a heading path and a part. `training/train.py` trains with these.
MAX_PAIR_TOKENS, MAX_QUESTION_TOKENS, MAX_PATH_TOKENS, MAX_PART_TOKENS = 192, 48, 32, 160
#: Characters of a heading path that are read, its last ones, and of a question and a part.
_MAX_PATH_CHARS, _MAX_TEXT_CHARS = 200, 2000
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)")
_TAG = re.compile(r"<[^<>]{1,200}>")


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage as tokens.

    Attributes:
        ids: numbers of its tokens.
        parts: for each token the place of its part, -1 for the heading path.
    """

    ids: tuple[int, ...]
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """A question and a passage as tokens.

    Attributes:
        ids: numbers of the tokens.
        question_tokens: how many of them are of the question, with the marks around it.
        parts: for each token the place of its part in the passage, -1 for all others.
    """

    ids: tuple[int, ...]
    question_tokens: int
    parts: tuple[int, ...]


class PairEncoder:
    """Encodes pairs with one vocabulary."""

    def __init__(self, words: WordPiece) -> None:
        self._words = words
        self._begin, self._end = words.number("[CLS]"), words.number("[SEP]")

    def question(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a question; what is beyond `MAX_QUESTION_TOKENS` is not read."""
        return tuple(self._words.encode(text[:_MAX_TEXT_CHARS])[:MAX_QUESTION_TOKENS])

    def passage(self, path: Iterable[str], parts: Iterable[str]) -> EncodedPassage:
        """Return the tokens of a passage, at most `MAX_PAIR_TOKENS`.

        Args:
            path: its headings, from the page's title down.
            parts: Markdown.
        """
        ids = self._words.encode(" > ".join(path)[-_MAX_PATH_CHARS:])[:MAX_PATH_TOKENS]
        places = [-1] * len(ids)
        for place, part in enumerate(parts):
            if len(ids) >= MAX_PAIR_TOKENS:
                break
            tokens = self._words.encode(readable(part[:_MAX_TEXT_CHARS]))[:MAX_PART_TOKENS]
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
