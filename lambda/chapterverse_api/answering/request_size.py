"""How much of a request a model service bills at most: tokens of texts, searches of a reranker."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chapterverse.text.utf8 import BILLED_TOKEN_BYTES, utf8_length
from chapterverse_api.budget.prices import Use
from chapterverse_api.generation.prompts import MAX_REASONING_TOKENS
from chapterverse_api.retrieval.rerankers import MAX_REQUEST_TEXTS, MAX_TEXT_BYTES

#: Tokens around the texts of one request: roles, names of fields, marks. They are 200 bytes, one token each at most.
FRAME_TOKENS = 200
#: Bytes of 500 tokens. A reranker reads a longer text, its question included, in parts, and bills each part like a
#: text: https://docs.cohere.com/docs/rerank-overview
_PART_BYTES = 1750
#: Bytes of the messages for a short text besides the answer: six turns of a conversation, as a rule, or a long
#: question. A longer conversation loses its middle.
WRITER_BYTES = 16_000
#: Sentences of one answer that a checker is asked about, and bytes of such a request: longer ones are not asked.
MAX_VOTES, MAX_VOTE_BYTES = 6, 12_000
#: Bytes of a checker's instructions, tokens of its verdict, and characters that a guardrail bills as one text.
_CHECK_RULES_BYTES, _VERDICT_TOKENS, _BILLED_TEXT_CHARS = 500, 16, 1_000


def billed_tokens(*texts: str) -> float:
    """Return about how many tokens a request with these texts has, rather too many."""
    return FRAME_TOKENS + sum(map(utf8_length, texts)) / BILLED_TOKEN_BYTES


def billed_searches(question: str, texts: Sequence[str]) -> int:
    """Return how many searches are billed: a text that is longer than a part is read in several."""
    question_bytes = utf8_length(question)
    parts = sum(1 + (question_bytes + min(utf8_length(text), MAX_TEXT_BYTES)) // _PART_BYTES for text in texts)
    return math.ceil(parts / MAX_REQUEST_TEXTS)


def max_searches(question_bytes: int) -> int:
    """Return how many searches a question of so many bytes can be billed as: it has at most a hundred texts."""
    return 1 + (question_bytes + MAX_TEXT_BYTES) // _PART_BYTES


def max_vote(
    text_bytes: int = MAX_VOTE_BYTES, characters: int = MAX_VOTE_BYTES, thoughts: int = MAX_REASONING_TOKENS
) -> Use:
    """Return the most that a second vote on texts of this size is billed."""
    return Use(
        FRAME_TOKENS + (_CHECK_RULES_BYTES + text_bytes) / BILLED_TOKEN_BYTES,
        _VERDICT_TOKENS + thoughts,
        math.ceil(characters / _BILLED_TEXT_CHARS),
    )
