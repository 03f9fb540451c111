"""Recognizes the refusal word that the prompt asks for if the sources hold no answer.

A sentence that is this word, or begins with it as a remark of its own, is a refusal, and the text behind it is ignored.
Inside a sentence the word is a mention, "the model replies NOT_IN_DOCS". Such a sentence is shown, with plain words in
place of the word, because readers don't know it.
"""

from __future__ import annotations

import re

from chapterverse_api.generation.prompts import REFUSAL

#: The plain words for a mention of the word.
IN_PLAIN_WORDS = "not in these docs"

# Markdown's writers put a backslash before "_", and some models say the word with blanks or in small letters.
_ANY = re.compile(REFUSAL.replace("_", r"(?:\\?_|\x20)"), re.IGNORECASE)
_EXACT = REFUSAL.replace("_", r"\\?_")
_MENTION = re.compile(rf"(?<!\w){_EXACT}(?!\w)")
_SOURCES = r"[\[【][\d,\s]{1,9}[\]】]"

# Quotes, stress, headings, items and marks of sources, which models put around the word.
_BEFORE = re.compile(rf"""(?>(?:[\s*_"'`“”„‘’«»‹›()>#-]++|{_SOURCES})*)""")
_AFTER = rf"""(?>(?:[ \t*_"'`“”‘’«»‹›)]++|{_SOURCES})*)"""
_NOTHING_MORE = re.compile(rf"""(?>(?:[\s*_"'`“”‘’«»‹›)>.!?…。-]++|{_SOURCES})*)""")
_LINE_END = re.compile(rf"{_AFTER}[.!]?[ \t]*+\n")
# The end of a sentence, or a remark. In small letters "not_in_docs:" may begin a list of states.
_REMARK = re.compile(rf"""{_AFTER}(?:[.!?…,;:]++["'”’»›*_`)]*+\s|[。，：；(–—]|-\s)""")


def refuses(sentence: str, *, first: bool) -> bool:
    """Whether a sentence says that the sources don't hold the answer.

    Args:
        first: whether the answer begins with it; behind an answer only the word to the letter counts.
    """
    before = _BEFORE.match(sentence)
    rest = sentence[before.end() :] if before else sentence
    word = _ANY.match(rest)
    if word is None:
        # The limit of the model's length may have cut the word.
        return first and len(rest) > len("NOT_") and REFUSAL.startswith(rest.replace("\\", "").upper())
    exact = _MENTION.match(rest) is not None
    if not (first or exact):
        return False
    return bool(
        _NOTHING_MORE.fullmatch(rest, word.end())
        or _LINE_END.match(rest, word.end())
        or (word.group().isupper() and _REMARK.match(rest, word.end()))
    )


def in_plain_words(sentence: str) -> str:
    """Return a sentence that mentions the word without it."""
    return _MENTION.sub(IN_PLAIN_WORDS, sentence) if REFUSAL[-4:] in sentence else sentence
