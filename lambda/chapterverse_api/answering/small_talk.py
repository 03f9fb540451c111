"""Recognizes messages to the chat that ask the documentation nothing: "thanks", "are you human", "how do I begin", "?".

Utterances of each language are data, in `small_talk.json`. A message is one of them if it has nearly the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from chapterverse.text.json_text import load_json
from chapterverse_api.contract import QUESTION_MARKS

#: Least share of the words of a message and an utterance that both have.
MIN_WORD_OVERLAP = 0.8
#: Longer messages are questions: characters.
MAX_MESSAGE_CHARS = 60

# Chinese and Japanese are compared by characters.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


def small_talk_language(message: str) -> str | None:
    """Return the language of small talk, BCP 47; empty for a mere question mark; None for everything else."""
    if message.strip() in QUESTION_MARKS:
        return ""
    words = _words(message) if len(message) <= MAX_MESSAGE_CHARS else frozenset()
    if not words:
        return None
    shares = [
        (len(words & utterance) / len(words | utterance), tag)
        for tag, utterances in _utterances()
        for utterance in utterances
        if not words.isdisjoint(utterance)
    ]
    share, tag = max(shares, key=lambda match: match[0], default=(0.0, ""))
    return tag if share >= MIN_WORD_OVERLAP else None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.replace("’", "'").casefold()))


@cache
def _utterances() -> tuple[tuple[str, Iterable[frozenset[str]]], ...]:
    data: dict[str, list[str]] = load_json("chapterverse_api.answering", "small_talk.json")
    return tuple((tag, tuple(map(_words, utterances))) for tag, utterances in data.items())
