"""Removes a model's reasoning and control characters from its text, and recognizes its refusal.

Reasoning in a known mark is never shown. Some servers send it as text, `<think>…</think>`. Some templates open it
before the model begins, so that only its end arrives; then all text before that was reasoning.
"""

from __future__ import annotations

import re

from chapterverse.text.json_text import SURROGATE
from chapterverse_api.ext.models.prompts import REFUSAL

_NAME = r"(?:[a-z]{2,12}[:_])?(?:think(?:ing)?|thoughts?|reasoning)"
_HARMONY = r"(?:<\|start\|>assistant)?<\|channel\|>"
_FINAL = rf"{_HARMONY}final(?:[^<]|<\|constrain\|>){{0,40}}<\|message\|>"

# What reasoning begins with in plain text, by kinds of models, and what it ends with. Servers that know a model send it
# in a field of its own.
_REASONING = {
    # Qwen, DeepSeek and most others; `seed:think`, `longcat_think` and the like.
    rf"<{_NAME}>": rf"</{_NAME}>",
    # Magistral, Kimi, Sky-T1 and OpenThinker, Command A, Gemma 4, MedGemma.
    r"\[think\]": r"\[/think\]",
    r"◁think▷": r"◁/think▷",
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",
    r"<\|start_thinking\|>": r"<\|end_thinking\|>",
    r"<\|channel>thought": r"<channel\|>",
    r"<unused94>": r"<unused95>",
    # gpt-oss: all channels but the last, with its marks and without them.
    rf"{_HARMONY}(?:analysis|commentary)[^<]{{0,80}}<\|message\|>": _FINAL,
    r"(?-i:analysis(?=[A-Z]))": r"(?-i:assistantfinal)",
}
#: Characters of the longest mark.
_MAX_MARK_CHARS = 160

_STARTS = [
    (re.compile(rf"(?<!\s)\s*+(?:{start})", re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for start, end in _REASONING.items()
]
_TAG = re.compile(f"(?P<end>{'|'.join(_REASONING.values())})|{'|'.join(_REASONING)}", re.IGNORECASE)
# What stands before an answer that no reasoning precedes, and behind its last word.
_ANSWER_START = re.compile(rf"\s*(?:{_FINAL}|<\|(?:start_response|begin_of_solution)\|>)", re.IGNORECASE)
_ANSWER_END = re.compile(
    r"""(?<![`"'“‘„«])(?:<\|(?:return|end|im_end|eot_id|eom_id|endoftext|end_of_text|end_response|end_of_solution)\|>"""
    r"|</s>|<end_of_turn>|<turn\|>|<eos>)\s*\Z",
    re.IGNORECASE,
)
# A mark that has begun: the rest of it may come with the next piece.
_BEGUN = re.compile(r"<\|(?:start|channel)\b(?!.*<\|message\|>)|[<\[◁](?!.*[>\]▷])", re.DOTALL)
_MAX_BEGUN_CHARS = 24
_WORD = "analysis"
# How marks end; a piece without that ends none, and most are.
_MARK_END = re.compile(r"[>\]▷]")
_WORD_CHARS = len("assistantfinal")
# Before a tag that is only mentioned.
_QUOTES = frozenset("`\"'“‘„«")

# The prompt asks for the refusal word if the sources hold no answer. A sentence that is this word, or begins with it as
# a remark of its own, is a refusal, and the text behind it is ignored. Inside a sentence the word is a mention, "the
# model replies NOT_IN_DOCS": it is shown with plain words in its place, because readers don't know it.
_IN_PLAIN_WORDS = "not in these docs"

# Markdown's writers put a backslash before "_", and some models say the word with blanks or in small letters.
_REFUSAL = re.compile(REFUSAL.replace("_", r"(?:\\?_|\x20)"), re.IGNORECASE)
_EXACT = REFUSAL.replace("_", r"\\?_")
_MENTION = re.compile(rf"(?<!\w){_EXACT}(?!\w)")
_SOURCES = r"[\[【][\d,\s]{1,9}[\]】]"

# Quotes, stress, headings, items and marks of sources, which models put around the word.
_BEFORE_REFUSAL = re.compile(rf"""(?>(?:[\s*_"'`“”„‘’«»‹›()>#-]++|{_SOURCES})*)""")
_AFTER_REFUSAL = rf"""(?>(?:[ \t*_"'`“”‘’«»‹›)]++|{_SOURCES})*)"""
_NOTHING_MORE = re.compile(rf"""(?>(?:[\s*_"'`“”‘’«»‹›)>.!?…。-]++|{_SOURCES})*)""")
_REFUSAL_LINE_END = re.compile(rf"{_AFTER_REFUSAL}[.!]?[ \t]*+\n")
# The end of a sentence, or a remark. In small letters "not_in_docs:" may begin a list of states.
_REMARK = re.compile(rf"""{_AFTER_REFUSAL}(?:[.!?…,;:]++["'”’»›*_`)]*+\s|[。，：；(–—]|-\s)""")


def join_surrogates(text: str) -> str:
    """Return a text with characters beyond 16 bits joined that came as two halves; UTF-8 can't hold a half."""
    if not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class ReasoningFilter:
    """Removes reasoning from a text that comes in pieces.

    Attributes:
        restarted: whether the last piece ended reasoning without a mark at its beginning, so that no text before it
            belongs to the answer.
    """

    def __init__(self) -> None:
        self.restarted = False
        # The beginning of the answer, until it is known that no reasoning is in it.
        self._lead: str | None = ""
        self._end: re.Pattern[str] | None = None
        self._tail = ""
        self._open_tags = 0

    def read(self, text: str, *, last: bool = False) -> str:
        """Return the answer's text in the next piece."""
        self.restarted = False
        if self._lead is None:
            return self._drop_unopened(text, last=last)
        self._lead += text
        while self._end or self._open():
            end = self._end.search(self._lead) if self._end else None
            if end is None:
                # The tag that ends it may come in pieces. A text that is all reasoning is no answer.
                self._lead = self._lead[-_MAX_MARK_CHARS:]
                return ""
            self._lead, self._end = self._lead[end.end() :], None
        lead = self._lead[start.end() :] if (start := _ANSWER_START.match(self._lead)) else self._lead
        lead = lead.lstrip()
        if not last and _may_begin_mark(lead):
            return ""
        self._lead = None
        return self._drop_unopened(lead, last=last)

    def _open(self) -> bool:
        """Whether the lead begins with reasoning, which is cut off up to there."""
        for start, end in _STARTS:
            if match := start.match(self._lead or ""):
                self._lead, self._end = (self._lead or "")[match.end() :], end
                return True
        return False

    def _drop_unopened(self, text: str, *, last: bool) -> str:
        """Return a text from the last end of reasoning without a beginning on; all of it if there is no such end."""
        tail_length, start = len(self._tail), 0
        has_end = _MARK_END.search(text) is not None or "final" in f"{self._tail[-_WORD_CHARS:]}{text}"
        text = self._tail + text
        for tag in _TAG.finditer(text) if has_end else ():
            if tag.end() <= tail_length or text[max(0, tag.start() - 1) : tag.start()] in _QUOTES:
                continue
            if tag["end"] is None:
                self._open_tags += 1
            elif self._open_tags:
                self._open_tags -= 1
            else:
                self.restarted, start = True, tag.end()
        self._tail = text[-_MAX_MARK_CHARS:]
        if not self.restarted:
            return text[tail_length:]
        # More reasoning may follow, and blanks do.
        self._lead, self._tail = "", ""
        self.restarted = False
        answer = self.read(text[start:], last=last)
        self.restarted = True
        return answer


def _may_begin_mark(lead: str) -> bool:
    """Whether the beginning of an answer may turn out to be a mark."""
    if not lead or _WORD.startswith(lead):
        return True
    begun = _BEGUN.match(lead)
    return begun is not None and len(lead) < (_MAX_MARK_CHARS if begun.group().startswith("<|") else _MAX_BEGUN_CHARS)


def without_end_mark(text: str) -> str:
    """Return a sentence without the mark by which a model's template ends a turn."""
    return _ANSWER_END.sub("", text)


def refuses(sentence: str, *, first: bool) -> bool:
    """Whether a sentence says that the sources don't hold the answer.

    Args:
        first: whether the answer begins with it; behind an answer only the word to the letter counts.
    """
    before = _BEFORE_REFUSAL.match(sentence)
    rest = sentence[before.end() :] if before else sentence
    word = _REFUSAL.match(rest)
    if word is None:
        # The limit of the model's length may have cut the word.
        return first and len(rest) > len("NOT_") and REFUSAL.startswith(rest.replace("\\", "").upper())
    exact = _MENTION.match(rest) is not None
    if not (first or exact):
        return False
    return bool(
        _NOTHING_MORE.fullmatch(rest, word.end())
        or _REFUSAL_LINE_END.match(rest, word.end())
        or (word.group().isupper() and _REMARK.match(rest, word.end()))
    )


def in_plain_words(sentence: str) -> str:
    """Return a sentence that mentions the word without it."""
    return _MENTION.sub(_IN_PLAIN_WORDS, sentence) if REFUSAL[-4:] in sentence else sentence
