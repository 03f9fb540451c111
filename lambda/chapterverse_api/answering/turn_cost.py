"""The most that a turn can cost, which the budget reserves before a model is asked, and the limits that bound it.

A part that asks a model keeps to these limits. A new paid call is added here before any code makes it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from chapterverse.text.utf8 import BILLED_TOKEN_BYTES, utf8_length
from chapterverse_api.answering.request_size import (
    BILLED_TEXT_CHARS,
    CHECK_RULES_BYTES,
    FRAME_TOKENS,
    VERDICT_TOKENS,
    WRITER_BYTES,
    bytes_of_tokens,
    max_searches,
)
from chapterverse_api.budget.daily_budget import CostCeiling
from chapterverse_api.budget.prices import Price, Prices
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.query_rewriting import MAX_EARLIER_CHARS, MAX_REWRITTEN_CHARS, MAX_REWRITTEN_TOKENS
from chapterverse_api.generation import prompts
from chapterverse_api.retrieval.passages import MAX_FAQ_TOKENS, MAX_PASSAGES_TOKENS
from chapterverse_api.retrieval.spelling import MAX_CORRECTED_WORDS

#: Bytes of the instructions, without the persona, and of the titles of sources.
_RULES_BYTES = 6000
#: Bytes of a character in UTF-8, at most.
_CHAR_BYTES = 4
#: Sentences of one answer that a checker is asked about, and bytes of such a request: longer ones are not asked.
MAX_CHECKS, MAX_CHECK_BYTES = 6, 12_000
#: Bytes of a schema, and how often at most data that fits it is asked for.
_SCHEMA_BYTES, DATA_TRIES = 8_000 * _CHAR_BYTES, 2
#: Bytes of the tools of the documentation, and of those of a site's owner.
_DOCS_TOOLS_BYTES, TOOLS_BYTES = 1_500, 32_000
#: How often a model may call tools in place of an answer, and how many calls it gets in all.
TOOL_ROUNDS, TOOL_CALLS = 2, 6
#: Characters of a query of the model's: more is no search, and is cut.
MAX_QUERY_CHARS = 200


class _RequestTokens(NamedTuple):
    """The tokens of one request to the generator."""

    input: float
    output: int


def max_turn_cost(
    query: ChatQuery, prices: Prices, *, keeps_threads: bool, tools: bool = False, plan: bool = False
) -> CostCeiling:
    """Return the most that answering a question can cost.

    Args:
        keeps_threads: whether conversations are stored, so that a summary of this one may have to be written.
        tools: whether the site's owner has tools.
        plan: whether the request is for a plan, which is data of the service's own schema.
    """
    # A token is at least one byte, so a reader's text, which may be made up, counts a token a byte.
    question_bytes = sum(utf8_length(text) for text in (query.query, query.selected_text))
    # The reader of a stored conversation need not send any of it: it may be as long as a prompt holds.
    is_stored = keeps_threads and query.thread_id is not None
    sent_bytes = sum(utf8_length(m.content) for m in query.conversation_history)
    max_history_bytes = bytes_of_tokens(prompts.MAX_HISTORY_TOKENS)
    history_bytes = max_history_bytes if is_stored else min(sent_bytes, max_history_bytes)
    requests = _generation_requests(query, question_bytes + history_bytes, is_stored=is_stored, tools=tools, plan=plan)

    def generation_cost(price: Price) -> float:
        return sum(
            price.cost(input_tokens=FRAME_TOKENS + one.input, output_tokens=one.output + prices.thoughts)
            for one in requests
        )

    # The search takes the question with its mistakes corrected. A follow-up is searched a second time: behind earlier
    # questions, or as a model rewrote it.
    corrected_bytes = question_bytes + _CHAR_BYTES * MAX_CORRECTED_WORDS
    subject_bytes = (
        _CHAR_BYTES * MAX_EARLIER_CHARS if is_stored else min(sent_bytes + 2, _CHAR_BYTES * MAX_EARLIER_CHARS)
    )
    follow_up_bytes = max(corrected_bytes + subject_bytes, _CHAR_BYTES * MAX_REWRITTEN_CHARS)
    searches = [corrected_bytes, follow_up_bytes] if history_bytes else [corrected_bytes]
    again = [_CHAR_BYTES * (MAX_QUERY_CHARS + MAX_CORRECTED_WORDS)] * (TOOL_CALLS if _looks_again(query, plan) else 0)
    embedded = sum(prices.embedder.cost(input_tokens=FRAME_TOKENS + text_bytes) for text_bytes in (*searches, *again))
    reranked = prices.reranker.cost(searches=max_searches(searches[-1]))
    checked = _checks_cost(prices)
    economy = embedded + generation_cost(prices.economy)
    # Most of the budget may be gone by the time that this is set aside, and the model for that need not be cheaper.
    return CostCeiling(max(embedded + reranked + generation_cost(prices.generator) + checked, economy), economy)


def _generation_requests(
    query: ChatQuery, conversation_bytes: int, *, is_stored: bool, tools: bool, plan: bool
) -> list[_RequestTokens]:
    """Return the most tokens of each request that the generator gets in a turn.

    Args:
        conversation_bytes: bytes of the question and of the messages before it.
    """
    conversation_bytes += bytes_of_tokens(prompts.MAX_SUMMARY_TOKENS)
    conversation_bytes += bytes_of_tokens(prompts.MAX_RECALLED_TOKENS) if is_stored else 0
    context_bytes = min(utf8_length(query.user_context), bytes_of_tokens(prompts.MAX_CONTEXT_TOKENS))
    reader_bytes = conversation_bytes + context_bytes
    prompt_bytes = _RULES_BYTES + bytes_of_tokens(prompts.MAX_PERSONA_TOKENS + prompts.MAX_MEMORIES_TOKENS)
    prompt_bytes += bytes_of_tokens(MAX_PASSAGES_TOKENS + MAX_FAQ_TOKENS)
    found_bytes = bytes_of_tokens(prompts.MAX_ROUND_TOKENS) + TOOL_CALLS * _CHAR_BYTES * MAX_QUERY_CHARS
    offered_bytes = _DOCS_TOOLS_BYTES + (TOOLS_BYTES if tools else 0)
    prompt_tokens = prompt_bytes / BILLED_TOKEN_BYTES + reader_bytes
    # The rounds in place of an answer, and the answer.
    first = _RequestTokens(prompt_tokens + offered_bytes / BILLED_TOKEN_BYTES, prompts.MAX_ANSWER_TOKENS)
    rounds = TOOL_ROUNDS if _looks_again(query, plan) else 0
    requests = [
        first._replace(input=first.input + number * found_bytes / BILLED_TOKEN_BYTES) for number in range(rounds + 1)
    ]
    if query.output is not None or plan:
        # The schema is a part of the instructions, and perhaps a field of the request.
        schema_tokens = 2 * _SCHEMA_BYTES / BILLED_TOKEN_BYTES
        data_tokens = prompts.MAX_PLAN_TOKENS if plan else prompts.MAX_DATA_TOKENS
        data_requests = [_RequestTokens(schema_tokens + requests[-1].input, data_tokens)] * DATA_TRIES
        requests = [*(requests[:-1] if tools else ()), *data_requests]
    if query.conversation_history or is_stored:
        rewriting_tokens = _RULES_BYTES / BILLED_TOKEN_BYTES + min(conversation_bytes, WRITER_BYTES)
        requests.append(_RequestTokens(rewriting_tokens, MAX_REWRITTEN_TOKENS))
    if is_stored:
        requests.append(_RequestTokens((_RULES_BYTES + WRITER_BYTES) / BILLED_TOKEN_BYTES, prompts.MAX_SUMMARY_TOKENS))
    return requests


def _looks_again(query: ChatQuery, plan: bool) -> bool:
    """Whether a model may call tools: a selection and a plan are answered from what they were given."""
    return query.selected_text is None and not plan


def max_claim_cost(prices: Prices) -> CostCeiling:
    """Return the most that the second votes on a claim can cost, besides the searches for its sentences."""
    return CostCeiling(_checks_cost(prices), 0.0)


def _checks_cost(prices: Prices) -> float:
    return MAX_CHECKS * prices.checker.cost(
        input_tokens=FRAME_TOKENS + (CHECK_RULES_BYTES + MAX_CHECK_BYTES) / BILLED_TOKEN_BYTES,
        output_tokens=VERDICT_TOKENS + prompts.MAX_REASONING_TOKENS,
        searches=math.ceil(MAX_CHECK_BYTES / BILLED_TEXT_CHARS),
    )


def max_search_cost(question: str, prices: Prices) -> CostCeiling:
    """Return the most that a search without an answer can cost."""
    embedded = prices.embedder.cost(input_tokens=FRAME_TOKENS + utf8_length(question))
    return CostCeiling(embedded + prices.reranker.cost(searches=max_searches(utf8_length(question))), embedded)
