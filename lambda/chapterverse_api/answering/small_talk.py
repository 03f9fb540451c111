"""Recognizes messages to the chat that ask the documentation nothing: "thanks", "are you human", "how do I begin", "?".

Utterances of each language are data, in `small_talk.json`. A message is an opening only word for word, as one more word
makes a question of it ("how do I begin a transaction"), and other talk if it has nearly the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

from chapterverse.text.json_text import load_json
from chapterverse_api.contract import QUESTION_MARKS

#: Least share of the words of a message and an utterance that both have.
MIN_WORD_OVERLAP = 0.8
#: Longer messages are questions: characters.
MAX_MESSAGE_CHARS = 60

# Chinese and Japanese are compared by characters.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
# Around a word; dashes and brackets make a command of it ("--help").
_SIGNS = " .,!?…¡¿。，、！？؟،"


def small_talk_language(message: str) -> str | None:
    """Return the language of small talk, BCP 47; empty for a mere question mark; None for everything else."""
    opening = opening_language(message)
    return _talk_language(message) if opening is None else opening


def opening_language(message: str) -> str | None:
    """Return the language of a greeting or of a call for help, which opens a conversation; as in small talk."""
    if message.strip() in QUESTION_MARKS:
        return ""
    sequence = _sequence(message)
    return next((tag for tag, utterances in _openings().items() if sequence in utterances), None)


def _talk_language(message: str) -> str | None:
    words = _words(message) if len(message) <= MAX_MESSAGE_CHARS else frozenset()
    if not words:
        return None
    shares = [
        (len(words & utterance) / len(words | utterance), tag)
        for tag, utterances in _talk().items()
        for utterance in utterances
        if not words.isdisjoint(utterance)
    ]
    share, tag = max(shares, key=lambda match: match[0], default=(0.0, ""))
    return tag if share >= MIN_WORD_OVERLAP else None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_plain(text)))


def _sequence(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip(_SIGNS) for word in _plain(text).split())))


def _plain(text: str) -> str:
    return text.replace("’", "'").casefold()


@cache
def _openings() -> Mapping[str, frozenset[tuple[str, ...]]]:
    return _load("openings", _sequence)


@cache
def _talk() -> Mapping[str, frozenset[frozenset[str]]]:
    return _load("talk", _words)


def _load(kind: Literal["openings", "talk"], read: Callable[[str], Any]) -> Mapping[str, frozenset[Any]]:
    data: dict[str, dict[str, list[str]]] = load_json("chapterverse_api.answering", "small_talk.json")
    return {tag: frozenset(map(read, utterances)) for tag, utterances in data[kind].items()}
