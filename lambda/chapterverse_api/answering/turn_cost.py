"""The most that a turn can cost, which the budget reserves before a model is asked, and the limits that bound it.

A part that asks a model keeps to these limits. A new paid call is added here before any code makes it.
"""

from __future__ import annotations

import math

from chapterverse.text.utf8 import BILLED_TOKEN_BYTES, utf8_length
from chapterverse_api.answering.request_size import (
    CHECK_RULES,
    FRAME,
    TEXT_UNIT,
    VERDICT,
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

#: Bytes of our own rules, without the persona, and of the titles of sources.
_RULES = 6000
#: Bytes of a character.
_WIDEST = 4
#: Sentences of one answer that a checker is asked about, and bytes of such a request: longer ones are not asked.
MAX_CHECKS, MAX_CHECK_BYTES = 6, 12_000
#: Bytes of a schema, and how often at most data that fits it is asked for.
_SCHEMA, DATA_TRIES = 8_000 * _WIDEST, 2
#: Bytes of all tools that are offered; how often a model may ask for calls, and how many calls it gets in all.
TOOLS_BYTES, TOOL_ROUNDS, TOOL_CALLS = 32_000, 2, 3


def max_turn_cost(
    query: ChatQuery, prices: Prices, *, keeps: bool, tools: bool = False, plan: bool = False
) -> CostCeiling:
    """Return the most that answering a question can cost.

    Args:
        keeps: whether conversations are kept, so that a summary of this one may have to be written.
        tools: whether the site has tools, whose results stand beside the sources.
        plan: whether the request is for a plan, which is data of a schema of ours.
    """
    # A token is at least one byte, so a reader's text, which may be made up, counts a token a byte.
    own = sum(utf8_length(text) for text in (query.query, query.selected_text))
    # The reader of a kept conversation need not send any of it: it may be as long as a prompt holds.
    kept = keeps and query.thread_id is not None
    sent = sum(utf8_length(m.content) for m in query.conversation_history)
    earlier = bytes_of_tokens(prompts.MAX_HISTORY_TOKENS)
    earlier = earlier if kept else min(sent, earlier)
    texts = _texts(query, own + earlier, kept=kept, tools=tools, plan=plan)

    def generation_cost(price: Price) -> float:
        return sum(
            price.cost(input_tokens=FRAME + read, output_tokens=written + prices.thoughts) for read, written in texts
        )

    # The question is searched for with its mistakes corrected, and perhaps again behind earlier ones, or as a model
    # wrote it in full.
    alone = own + _WIDEST * MAX_CORRECTED_WORDS
    subject = _WIDEST * MAX_EARLIER_CHARS if kept else min(sent + 2, _WIDEST * MAX_EARLIER_CHARS)
    longest = max(alone + subject, _WIDEST * MAX_REWRITTEN_CHARS) if earlier else alone
    embedded = prices.embedder.cost(input_tokens=FRAME + alone) + (
        prices.embedder.cost(input_tokens=FRAME + longest) if earlier else 0.0
    )
    reranked = prices.reranker.cost(searches=max_searches(longest))
    checked = MAX_CHECKS * prices.checker.cost(
        input_tokens=FRAME + (CHECK_RULES + MAX_CHECK_BYTES) / BILLED_TOKEN_BYTES,
        output_tokens=VERDICT + prompts.MAX_REASONING_TOKENS,
        searches=math.ceil(MAX_CHECK_BYTES / TEXT_UNIT),
    )
    economy = embedded + generation_cost(prices.economy)
    # Most of the budget may be gone by the time that this is set aside, and the model for that need not be cheaper.
    return CostCeiling(max(embedded + reranked + generation_cost(prices.generator) + checked, economy), economy)


def _texts(query: ChatQuery, conversation: int, *, kept: bool, tools: bool, plan: bool) -> list[tuple[float, int]]:
    """Return the tokens that the generator reads and writes in each of its requests.

    Args:
        conversation: bytes of the question and of the messages before it.
    """
    recalled = bytes_of_tokens(prompts.MAX_RECALLED_TOKENS) if kept else 0
    conversation += bytes_of_tokens(prompts.MAX_SUMMARY_TOKENS) + recalled
    reader = conversation + min(utf8_length(query.user_context), bytes_of_tokens(prompts.MAX_CONTEXT_TOKENS))
    ours = _RULES + bytes_of_tokens(prompts.MAX_PERSONA_TOKENS + prompts.MAX_MEMORIES_TOKENS)
    ours += bytes_of_tokens(MAX_PASSAGES_TOKENS + MAX_FAQ_TOKENS)
    ours += TOOL_CALLS * bytes_of_tokens(prompts.MAX_RESULT_TOKENS) if tools else 0
    read, written = ours / BILLED_TOKEN_BYTES + reader, prompts.MAX_ANSWER_TOKENS
    texts = [(read, written)]
    if query.output is not None or plan:
        # The schema stands in the instructions, and perhaps in a field of the request.
        written = prompts.MAX_PLAN_TOKENS if plan else prompts.MAX_DATA_TOKENS
        texts = [(2 * _SCHEMA / BILLED_TOKEN_BYTES + read, written)] * DATA_TRIES
    if tools:
        texts += [((ours + TOOLS_BYTES) / BILLED_TOKEN_BYTES + reader, prompts.MAX_TOOL_TOKENS)] * TOOL_ROUNDS
    if query.conversation_history or kept:
        texts.append((_RULES / BILLED_TOKEN_BYTES + min(conversation, WRITER_BYTES), MAX_REWRITTEN_TOKENS))
    if kept:
        texts.append(((_RULES + WRITER_BYTES) / BILLED_TOKEN_BYTES, prompts.MAX_SUMMARY_TOKENS))
    return texts


def max_search_cost(question: str, prices: Prices) -> CostCeiling:
    """Return the most that a search without an answer can cost."""
    embedded = prices.embedder.cost(input_tokens=FRAME + utf8_length(question))
    return CostCeiling(embedded + prices.reranker.cost(searches=max_searches(utf8_length(question))), embedded)
