"""Decides whether a sentence is a claim: whether it says something about the subject, and so needs a passage.

Every sentence is one, except the forms listed here: filler, a heading that is a title, a question, an announcement with
a colon, and the statement that the documentation doesn't say. Each form is matched as a whole, because a sentence that
also hides a claim is longer than the form. The words of the forms are data, in `claims.json`, in English, German,
French and Spanish. In other languages filler counts as a claim, which costs an honest answer the status "answered" and
not its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chapterverse.text import lexical
from chapterverse.text.json_text import load_json
from chapterverse_api.ext.check.analyzed_text import AnalyzedSentence

#: Words of the longest heading that is a title, and of the longest announcement that need not look like one.
_MAX_TITLE_WORDS, _MAX_BRIEF_WORDS = 8, 6
#: Words that may precede "the documentation doesn't say", and words of each item of a list behind it.
_MAX_LEAD_WORDS, _MAX_ITEM_WORDS = 4, 3
#: Characters of the longest phrase, "according to …", that may precede it instead.
_MAX_ATTRIBUTION_CHARS = 60
#: Content words of the longest filler.
_MAX_FILLER_WORDS = 6
#: Characters at a sentence's end in which a tag question is looked for.
_MAX_TAG_CHARS = 40

_FORMS: Mapping[str, Mapping[str, Any]] = load_json("chapterverse_api.ext.check", "claims.json")


def _any(name: str) -> str:
    """Return a pattern for the words of a list, in every language."""
    return f"(?:{'|'.join(_FORMS[name].values())})"


_FILLER = frozenset(word for words in _FORMS["filler"].values() for word in words.split())
# "Let me know if you need more!"
_POLITE = re.compile(rf"{_any('polite_phrases')}\b[^.;:,\n]{{0,60}}[.!]?", re.IGNORECASE)
# A verb that makes a statement of a line: "Vaults are locked".
_STATES = re.compile(rf"\b{_any('statement_verbs')}\b", re.IGNORECASE)
# "How to lock a vault"
_QUESTION_WORD = re.compile(rf"{_any('question_words')}\b", re.IGNORECASE)
# These questions are claims: "Vaults are shared, right?", "Did you know vaults are shared?"
_TAG_QUESTION = re.compile(rf",\s*{_any('tag_questions')}\s?[?？]", re.IGNORECASE)
_DID_YOU_KNOW = re.compile(_any("did_you_know"), re.IGNORECASE)
# "First, here is", before a colon.
_ANNOUNCEMENT = re.compile(
    rf"(?:{_any('sequence_words')},?\s)?{_any('announcing_words')}\b(?:\s(?:is|are|sind|ist)\b)?", re.IGNORECASE
)
# "the following commands:"
_ANNOUNCED = re.compile(rf"\b{_any('announced_things')}\b", re.IGNORECASE)
# "To lock it, you can:"
_YOU_CAN = re.compile(
    r"\b(?:you|sie|vous)\s(?:can|must|should|may|have|können|müssen|pouvez|devez)(?:\sdo)?\b", re.IGNORECASE
)
# "The documentation doesn't say …": about the sources, and not about their subject.
_GAP = re.compile("|".join(form for forms in _FORMS["gap_statements"].values() for form in forms), re.IGNORECASE)
# Where a sentence is split into parts: "…, but …"
_PART_END = re.compile(
    rf"[;:—–]\s+|\s-\s|\.\s|,\s{_any('conjunctions_after_comma')}\b|\s{_any('conjunctions')}\b", re.IGNORECASE
)
# "whether vaults are shared is left open"
_INDIRECT_QUESTION = re.compile(r"(?:how|whether|what|which|why|when|where|who)\b", re.IGNORECASE)
# "According to the sources", "I'm sorry"
_OPENING = re.compile(
    rf"(?:{_any('attributions')}|{_any('regret_subjects')}?\s?{_any('regrets')})\b",
    re.IGNORECASE,
)


def says_nothing(sentence: AnalyzedSentence) -> bool:
    """Whether no source is needed for any word of a sentence: it has no content words, or is filler alone."""
    if sentence.literals or len(sentence.content_positions) > _MAX_FILLER_WORDS:
        return False
    words = lexical.words(sentence.text, sentence.language)
    return all(word.surface.casefold() in _FILLER for word in words) or _POLITE.fullmatch(sentence.text) is not None


def is_claim(sentence: AnalyzedSentence) -> bool:
    """Whether a sentence needs a passage that says it."""
    text = sentence.text
    if says_nothing(sentence):
        return False
    if sentence.kind == "code":
        return True
    if text.endswith(("?", "？")) and not sentence.literals:
        return bool(_TAG_QUESTION.search(text[-_MAX_TAG_CHARS:]) or _DID_YOU_KNOW.match(text))
    if sentence.kind == "heading":
        return not _is_title(text)
    if text.endswith((":", "：")):
        return not _is_announcement(text[:-1])
    return not _states_only_gaps(text)


def leaves_open(text: str) -> bool:
    """Whether a sentence states that the documentation leaves something open, among other things."""
    return _GAP.search(text) is not None


def _is_title(heading: str) -> bool:
    if "|" in heading:
        return True
    if len(heading.split()) > _MAX_TITLE_WORDS or heading.endswith((".", "!", "。", "！")):
        return False
    return not _STATES.search(heading) or _QUESTION_WORD.match(heading) is not None


def _is_announcement(text: str) -> bool:
    """Whether the text before a colon only points at what follows."""
    opening = _ANNOUNCEMENT.match(text)
    rest = _YOU_CAN.sub(" ", text[opening.end() :] if opening else text)
    if re.search(r"[:;]\s", rest) or _STATES.search(rest):
        return False
    points = bool(_ANNOUNCED.search(rest.rpartition(",")[2]))
    return len(text.split()) <= _MAX_BRIEF_WORDS or points or (opening is not None and "," not in rest)


def _states_only_gaps(text: str) -> bool:
    """Whether each part of a sentence says that the documentation doesn't say, or leads to or lists it."""
    parts = [part for part in _PART_END.split(text) if re.search(r"\w", part)]
    return any(map(leaves_open, parts)) and all(map(_is_about_gap, parts))


def _is_about_gap(part: str) -> bool:
    gap = _GAP.search(part)
    lead = (part[: gap.start()] if gap else part).strip()
    if gap and _INDIRECT_QUESTION.match(lead):
        return True
    if _STATES.search(lead):
        return False
    if len(lead.split()) <= (_MAX_LEAD_WORDS if gap else _MAX_ITEM_WORDS):
        return True
    return len(lead) < _MAX_ATTRIBUTION_CHARS and _OPENING.match(lead) is not None
