"""Reads replies of model services, whatever their dialect: why a text ended, and why a request was rejected.

One table for all services. The words are those of the API references of OpenAI, Azure, Anthropic, Google, Amazon,
Cohere, Mistral, Zhipu, Alibaba, MiniMax and IBM, and of what vLLM, SGLang, llama.cpp, Ollama, TGI and LiteLLM answer,
November 2026. A word that no table holds is never taken as good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: Why a text ended: it is complete, a limit of length cut it, a filter withheld it, or it broke off.
Ending = Literal["complete", "cut", "withheld", "broken"]

#: Reasons in lower case, without what is between their words.
_REASONS: dict[Ending, str] = {
    "complete": """
        stop stopped stopsequence stoptoken endturn endofturn endoftext eos eostoken complete completed finished done
        toolcall toolcalls tooluse functioncall
    """,
    "cut": """
        length maxlength maxtokens maxnewtokens maxoutputtokens maxcompletiontokens tokenlimit modellength contextlength
        modelcontextwindowexceeded
    """,
    "withheld": """
        contentfilter contentfiltered contentpolicy guardrailintervened safety imagesafety sensitive refusal refused
        recitation blocklist prohibitedcontent spii errortoxic moderation flagged
    """,
}
_ENDINGS = {word: ending for ending, words in _REASONS.items() for word in words.split()}
#: What stands for no reason yet.
_UNENDED = {"", "null", "none", "notfinished", "inprogress", "incomplete"}
#: A fence of Markdown.
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")

#: Why a service rejects a request, as far as that decides what to do:
#:
#:     withheld     a filter lets this question, or its answer, not pass
#:     too_long     the prompt is longer than the model's context
#:     no_system    the model takes no system message
#:     no_stream    it may not be streamed
#:     spent        a budget, a quota or a balance is used up
#:     loading      the model is not loaded yet
Cause = Literal["withheld", "too_long", "no_system", "no_stream", "spent", "loading"]

#: The causes by the words of an error's code, type or parameter, then by those of its message. The first match counts.
_CODES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        "withheld",
        re.compile(
            r"content_?filter|content_?policy|responsible_?ai|moderation|data_?inspection|guardrail|flagged|safety_check"
            r"|prohibited_content|\bsafety\b|\bsensitive\b|\binvalid_prompt\b|policy_violation|no_valid_response"
            # Zhipu and MiniMax number theirs.
            r"|\b(?:1301|1026|1027)\b"
        ),
    ),
    (
        "too_long",
        re.compile(
            r"context_(?:length|window|size)|exceed_context|prompt_too_long|string_above_max|input_too_long"
            r"|request_too_large|max_prompt|tokens_limit_reached"
        ),
    ),
    (
        "spent",
        re.compile(
            r"insufficient_(?:quota|balance|funds|credits?)|budget_exceeded|payment_required|billing|arrearage"
            r"|credits?_exhausted|\b1113\b"
        ),
    ),
    ("no_stream", re.compile(r"(?:\A|\s)stream(?:\s|\Z)")),
    ("no_system", re.compile(r"messages\[0\]\.role")),
    ("loading", re.compile(r"model_?(?:is_)?(?:loading|not_?ready)")),
)
_MESSAGES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        "withheld",
        re.compile(
            r"content (?:management )?policy|content filter|contentpolicyviolation|usage (?:polic|guideline)"
            r"|requires moderation|was flagged|guardrail|inappropriate content|content exists risk|prompt blocked"
            r"|response blocked|sensitive (?:content|information|words)|敏感|不安全"
        ),
    ),
    (
        "too_long",
        re.compile(
            r"context (?:length|size|window)|maximum (?:input|prompt|sequence|model) length|max_model_len"
            r"|(?:prompt|input|request|message)s? (?:is|are) too (?:long|large)|too many (?:input |prompt )?tokens"
            r"|reduce (?:the length|your (?:message|prompt|input))|request too large|input length"
            r"|exceeds? the (?:model'?s )?(?:maximum|max|limit)[^.]{0,40}tokens"
        ),
    ),
    (
        "spent",
        re.compile(
            r"budget has been exceeded|exceeded (?:your|the) (?:current |monthly )?(?:quota|budget)"
            r"|(?:insufficient|not enough|no|out of) (?:account )?(?:balance|funds|credits?|quota)"
            r"|credit balance|余额不足"
        ),
    ),
    (
        "no_system",
        re.compile(
            r"system (?:role|message|prompt|instruction)s? (?:is |are )?(?:not|n't|un)|developer instruction is not"
            r"|n[o']t? support\w* (?:the )?'?system|unexpected role '?system|'system'[^.]{0,40}not support"
            r"|roles must alternate|only user and assistant roles|does not support '?system"
        ),
    ),
    (
        "no_stream",
        re.compile(
            r"\bstream(?:ing)?\b[^.]{0,24}(?:\bnot\b|n't|unsupported|disabled|unavailable)"
            r"|verified to stream|(?:\bnot\b|n't)[^.]{0,16}\bstream(?:ing|ed)?\b"
            r"|unsupported[^.]{0,16}\bstream(?:ing)?\b"
        ),
    ),
    ("loading", re.compile(r"loading model|model[^.]{0,60}(?:is|still) (?:currently )?loading|model is not ready")),
)

#: The members of an error that say what it is, and those in which another one is nested.
_CODE_MEMBERS = ("code", "type", "param", "status", "reason", "status_code", "error_code", "error_type", "loc")
_MESSAGE_MEMBERS = ("message", "msg", "detail", "status_msg", "error_msg", "title")
_NESTED_MEMBERS = ("error", "errors", "innererror", "inner_error", "detail", "metadata", "base_resp", "details")
#: Characters of a message, and members, that are read.
_MAX_MESSAGE_CHARS, _MAX_DEPTH, _MAX_ITEMS = 2_000, 5, 8


def read_ending(reason: object) -> Ending | None:
    """Return why a text ended; None if this is no reason to end."""
    if reason is None:
        return None
    word = _BETWEEN_WORDS.sub("", str(reason).lower()) if isinstance(reason, str) else "?"
    return None if word in _UNENDED else _ENDINGS.get(word, "broken")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a service's error says. It is never shown, because it may quote the request or a part of the key.

    Attributes:
        codes: its codes, types and parameters, in lower case, with blanks between them.
        message: its words in lower case.
    """

    codes: str
    message: str

    @classmethod
    def read(cls, body: Any) -> Fault:
        """Return the error in a reply's body of any form."""
        codes, messages = list[str](), list[str]()
        for is_code, text in _words(body, _MAX_DEPTH):
            (codes if is_code else messages).append(text)
        return cls(" ".join(codes).lower(), " ".join(messages).lower()[:_MAX_MESSAGE_CHARS])

    @property
    def cause(self) -> Cause | None:
        """Why the request was rejected; None if that is not known."""
        by_code = (cause for cause, pattern in _CODES if pattern.search(self.codes))
        by_message = (cause for cause, pattern in _MESSAGES if pattern.search(self.message))
        return next(by_code, None) or next(by_message, None)

    def names(self, *fields: str) -> bool:
        """Whether it speaks of one of these fields of a request."""
        return any(re.search(rf"(?<![a-z_]){field}(?![a-z_])", f"{self.codes} {self.message}") for field in fields)


def find_error(document: Any) -> Any:
    """Return the error that a reply with status 200, or a piece of one, holds in place of a text; None without one."""
    if isinstance(document, list):
        document = next(iter(document), None)
    if not isinstance(document, dict):
        return None
    if document.get("error"):
        return document
    # MiniMax gives each reply a status, which is 0 without an error.
    minimax = document.get("base_resp")
    failed = isinstance(minimax, dict) and minimax.get("status_code")
    return document if failed or "error" in (document.get("type"), document.get("object")) else None


def _words(value: Any, depth: int) -> Iterator[tuple[bool, str]]:
    """Yield the texts of an error, each with whether it is a code."""
    if isinstance(value, str):
        yield False, value
    elif isinstance(value, list):
        for item in value[:_MAX_ITEMS] if depth else ():
            yield from _words(item, depth - 1)
    elif isinstance(value, Mapping) and depth:
        for name in _CODE_MEMBERS:
            yield from ((True, text) for text in _short_texts(value.get(name)))
        for name in _MESSAGE_MEMBERS:
            if isinstance(text := value.get(name), str):
                yield False, text
        for name in _NESTED_MEMBERS:
            nested = value.get(name)
            if name not in _MESSAGE_MEMBERS or not isinstance(nested, str):
                yield from _words(nested, depth - 1)


def _short_texts(value: Any) -> Iterator[str]:
    for item in value[:_MAX_ITEMS] if isinstance(value, list) else (value,):
        if isinstance(item, str | int) and not isinstance(item, bool):
            yield str(item)[:100]


def unfence(text: str) -> str:
    """Return the text in a fence of Markdown that is all of a text, such as models write around JSON; else the text."""
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text
