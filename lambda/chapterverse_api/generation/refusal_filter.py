"""Refusal by the model: the word that it was told to say when its sources don't hold the answer.

A draft that is this word, or begins with it as a remark of its own, is no answer, whatever follows. In a sentence it is
a mention, "NOT_IN_DOCS is what the model says", and the sentence stands; but the word is between the model and us, and
a reader gets it in plain words. Behind an answer, on a line of its own, it says nothing to a reader and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from chapterverse_api.generation import Draft, Span
from chapterverse_api.generation.prompts import REFUSAL

#: What a mention of the word becomes.
IN_PLAIN_WORDS = "not in these docs"

#: Characters in which the word must begin.
_LEAD = 200
#: Characters that may wait in the middle of a text: the word with its backslashes, a stop and some blanks.
_WAITING = len(REFUSAL) + 6

# Markdown's writers put a backslash before "_", and some models say the word with blanks or in small letters.
_ANY = REFUSAL.replace("_", r"(?:\\?_|\x20)")
_EXACT = REFUSAL.replace("_", r"\\?_")
_SOURCES = r"[\[【][\d,\s]{1,9}[\]】]"

# Quotes, stress, headings, items and marks of sources: what a model may dress the word in.
_BEFORE = re.compile(rf"""(?>(?:[\s*_"'`“”„‘’«»‹›()>#-]++|{_SOURCES})*)""")
_AFTER = rf"""(?>(?:[ \t*_"'`“”‘’«»‹›)]++|{_SOURCES})*)"""
_BEGUN_SOURCES = re.compile(r"[\[【][\d,\s]{0,9}")
_WORD = re.compile(_ANY, re.IGNORECASE)
_NOTHING_MORE = re.compile(rf"""(?>(?:[\s*_"'`“”‘’«»‹›)>.!?…。-]++|{_SOURCES})*)""")
_LINE_END = re.compile(rf"{_AFTER}[.!]?[ \t]*+\n")
# The end of a sentence, or a remark. In small letters "not_in_docs:" may begin a list of states.
_REMARK = re.compile(rf"""{_AFTER}(?:[.!?…,;:]++["'”’»›*_`)]*+\s|[。，：；(–—]|-\s)""")
_MORE_TO_COME = re.compile(rf"""(?>(?:[\s\d*_"'`“”‘’«»‹›)>.!?…,;:-]++|{_SOURCES})*)[\[【]?[\d,\s]*+\Z""")

_MENTION = re.compile(rf"(?<!\w){_EXACT}(?!\w)")
_REST_OF_LINE = re.compile(r"[.!]?[ \t]{0,3}(?=\n|\Z)")
_ALONE = re.compile(rf"{_EXACT}[.!]?[ \t]{{0,3}}")


class NotInDocs(Exception):
    """The model says that its sources don't hold the answer. No failure, but an answer of its own kind."""


def refusable(steps: Steps[str, None, Draft]) -> Steps[str, None, Draft]:
    """Pass a draft on as it is written; only what may become the word waits until it is known.

    Closes `steps` however it ends.

    Raises:
        Refused: the draft is the word or begins with it as a remark; raised as soon as that is certain.
    """
    with closing(steps):
        mentions, text, draft = _Mentions(), "", None
        while draft is None and _may_be_refusal(text):
            try:
                text += next(steps)
            except StopIteration as end:
                draft = end.value
        if draft is not None and _is_refusal(text):
            raise NotInDocs
        if ready := mentions.read(text):
            yield ready
        while draft is None:
            try:
                ready = mentions.read(next(steps))
            except StopIteration as end:
                draft = end.value
            else:
                if ready:
                    yield ready
        if rest := mentions.end():
            yield rest
        return tuple(_in_plain_words(draft))


def _may_be_refusal(text: str) -> bool:
    """Return whether it depends on what follows; an answer's first word says that it does not.

    Raises:
        Refused: it is one, whatever follows.
    """
    rest = _undressed(text)
    word = _WORD.match(rest)
    if len(text) > _LEAD or not word:
        return len(text) <= _LEAD and (_is_part(rest) or _BEGUN_SOURCES.fullmatch(rest) is not None)
    after = rest[word.end() :]
    if _LINE_END.match(after) or (word.group().isupper() and _REMARK.match(after)):
        raise NotInDocs
    return _MORE_TO_COME.match(after) is not None


def _is_refusal(text: str) -> bool:
    """Return whether a whole draft is the word; also one that was cut in the middle of it."""
    rest = _undressed(text)
    word = _WORD.match(rest)
    if word is None:
        return len(rest) > len("NOT_") and _is_part(rest)
    return _NOTHING_MORE.fullmatch(rest, word.end()) is not None


def _undressed(text: str) -> str:
    before = _BEFORE.match(text)
    return text[before.end() :] if before else text


def _is_part(text: str) -> bool:
    """Return whether the word begins so, in any of its forms; nothing is such a beginning too."""
    return REFUSAL.startswith(text.replace("\\", "").replace(" ", "_").upper())


@dataclass(slots=True)
class _Mentions:
    """Puts the word into plain words while the text is written.

    Attributes:
        waiting: what may be a part of the word, or the line that it has for itself.
        before: the character that was let through last.
    """

    waiting: str = ""
    before: str = ""

    def read(self, text: str) -> str:
        """Return what can be shown now that `text` has come."""
        self.waiting += text
        return self._shown(self._settled())

    def end(self) -> str:
        return self._shown(len(self.waiting))

    def _shown(self, settled: int) -> str:
        text, at, pieces = self.before + self.waiting, len(self.before), list[str]()
        end = at + settled
        for first, last, instead in _changes(text):
            if first >= end:
                break
            pieces += [text[at:first], instead]
            at = last
        pieces.append(text[at:end])
        self.before, self.waiting = text[:end][-1:], text[end:]
        return "".join(pieces)

    def _settled(self) -> int:
        """Return up to where nothing that follows makes a difference."""
        text = self.waiting
        for at in (at for at in range(max(0, len(text) - _WAITING), len(text)) if text[at] == REFUSAL[0]):
            inside = (text[at - 1 : at] if at else self.before).isalnum()
            rest = text[at:]
            if not inside and (REFUSAL.startswith(rest.replace("\\", "")) or _ALONE.fullmatch(rest)):
                return at
        return len(text)


def _changes(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield from where to where the text changes, in order, and what stands there instead."""
    for found in _MENTION.finditer(text):
        line = _REST_OF_LINE.match(text, found.end())
        if line and text[max(0, found.start() - 1) : found.start()] in {"", "\n"}:
            yield found.start(), line.end(), ""
        else:
            yield found.start(), found.end(), IN_PLAIN_WORDS


def _in_plain_words(draft: Draft) -> Iterator[Span]:
    """Yield the spans with the changes that the stream has; one that goes over several is in the first."""
    whole, start = "".join(span.text for span in draft), 0
    changes = _changes(whole)
    change = next(changes, None)
    for span in draft:
        end, pieces, at = start + len(span.text), list[str](), start
        while change and change[0] < end:
            first, last, instead = change
            pieces += [whole[at:first], instead] if first >= start else []
            at = min(last, end)
            if last > end:
                break
            change = next(changes, None)
        text = "".join([*pieces, whole[at:end]])
        if text or span.cut:
            yield replace(span, text=text)
        start = end
