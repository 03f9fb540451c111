"""Tells by its words what a message is: small talk, a follow-up, which a model may rewrite, or a question.

Small talk is "thanks", "are you human", "how do I begin" or "?". Utterances of each language are data, in
`small_talk.json`. A message is an opening only word for word, as one more word makes a question of it ("how do I begin
a transaction"), and other talk if it has nearly the same words.

A short question may be a follow-up (hit@5 .886 to .989, .892 to .969, .882 to .902, .914 to .914 on four sets of
conversations that the repository doesn't hold; `benchmarks/understanding.py --only follow_ups` measures the search of
today). A question of a few words more is one if it begins with a continuation ("what about …") or a pronoun ("does it
…"). A long question stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from chapterverse.extensions import load_part
from chapterverse.text import lexical
from chapterverse.text.json_text import load_json
from chapterverse.text.tokens import cut_to_words
from chapterverse_api.contract import QUESTION_MARKS
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer

#: Least share of the words of a message and an utterance that both have.
_MIN_WORD_OVERLAP = 0.8
#: Longer messages are questions: characters.
_MAX_SMALL_TALK_CHARS = 60

# Chinese and Japanese are compared by characters.
_TALK_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
# Around a word; dashes and brackets make a command of it ("--help").
_SIGNS = " .,!?…¡¿。，、！？؟،"
#: "yes" by its beginning, or because it names no subject; "perhaps" by its length: it may name a new subject.
FollowUpVerdict = Literal["no", "perhaps", "yes"]

#: Content words from which a question is a follow-up only by its beginning, and from which it never is one.
_STANDALONE_WORDS, _LONG_WORDS = 4, 6
#: Two characters overlap with the next two where no space divides words, so as much meaning counts for more.
_LONG_UNSPACED_WORDS = 10

#: Earlier questions that are put before a follow-up, and characters of each.
_MAX_QUESTIONS, _MAX_QUESTION_CHARS = 3, 300

#: Function words of languages that `stopwords` has no list of, and beginnings of questions that continue the
#: conversation or point back at it, by the language of the docs.
_FOLLOW_UPS = load_json("chapterverse_api.conversation", "follow_ups.json")
_UNLISTED = {tag: frozenset(words.split()) for tag, words in _FOLLOW_UPS["unlisted"].items()}
_PATTERNS = {
    tag: re.compile(rf"\A\W*+(?:(?:ok|okay|thanks|danke|merci|gracias)\W++)?(?:{'|'.join(leads)})", re.IGNORECASE)
    for tag, leads in _FOLLOW_UPS["leads"].items()
}
#: An identifier alone, such as "base_url", is a complete question.
_IDENTIFIER = re.compile(r"\W*+\w[^\W_]*+[_.:/@-][\w.:/@-]*\w\W*")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def detect_follow_up(question: str, languages: Sequence[str]) -> FollowUpVerdict:
    """Return whether a question needs the conversation.

    Args:
        languages: the languages of the docs, BCP 47; English is always recognized too.
    """
    words = _count_content_words(question, languages)
    tags = dict.fromkeys((*map(lexical.primary_subtag, languages), "en"))
    leads = any(_PATTERNS[tag].match(question) for tag in tags if tag in _PATTERNS)
    long = _LONG_UNSPACED_WORDS if _UNSPACED.search(question) else _LONG_WORDS
    if not words or (leads and words < long):
        return "yes"
    return "perhaps" if words < _STANDALONE_WORDS and not _IDENTIFIER.fullmatch(question.strip()) else "no"


def _count_content_words(text: str, languages: Sequence[str]) -> int:
    """Return how many different words of a text carry meaning."""
    unlisted = frozenset[str]().union(*(_UNLISTED.get(lexical.primary_subtag(tag), ()) for tag in languages))
    return len({word.surface for word in lexical.question_words(text, languages)} - unlisted)


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
    words = _words(message) if len(message) <= _MAX_SMALL_TALK_CHARS else frozenset()
    if not words:
        return None
    shares = [
        (len(words & utterance) / len(words | utterance), tag)
        for tag, utterances in _talk().items()
        for utterance in utterances
        if not words.isdisjoint(utterance)
    ]
    share, tag = max(shares, key=lambda match: match[0], default=(0.0, ""))
    return tag if share >= _MIN_WORD_OVERLAP else None


def _words(text: str) -> frozenset[str]:
    return frozenset(_TALK_WORD.findall(_plain(text)))


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
    data: dict[str, dict[str, list[str]]] = load_json("chapterverse_api.conversation", "small_talk.json")
    return {tag: frozenset(map(read, utterances)) for tag, utterances in data[kind].items()}


@dataclass(frozen=True, slots=True)
class ContextualQuery:
    """A follow-up with what it refers to.

    Attributes:
        text: the text to search for: the question as a model wrote it in full, or earlier questions and this one, a
            line each.
        title: the text that a reader is shown: the question in full, or the last of the earlier ones.
    """

    text: str
    title: str


def rewrite_follow_up(
    question: str,
    conversation: Conversation,
    writer: Writer | None,
    deadline: Deadline,
    languages: Sequence[str] = ("en",),
) -> ContextualQuery | None:
    """Return what to search for; None without earlier questions, or with the same only.

    Args:
        writer: gets a second and a half to rewrite the question; None without a model.
        deadline: the turn's.
        languages: the languages of the docs, BCP 47.
    """
    if not conversation.questions:
        return None
    if writer and (rewritten := load_part("rewrite")(question, conversation.messages, writer, deadline, languages)):
        return None if rewritten == question else ContextualQuery(rewritten, rewritten)
    earlier: list[str] = []
    for text in reversed(conversation.questions):
        # Of a chain ("and on Windows?", "and on a Mac?") the last link and the question that it hangs on say it all.
        if earlier and detect_follow_up(text, languages) == "yes":
            continue
        if text != question and text not in earlier:
            earlier.insert(0, cut_to_words(text, _MAX_QUESTION_CHARS))
        if len(earlier) == _MAX_QUESTIONS or _count_content_words("\n".join(earlier), languages) >= _STANDALONE_WORDS:
            break
    return ContextualQuery("\n".join([*earlier, question]), earlier[-1]) if earlier else None
