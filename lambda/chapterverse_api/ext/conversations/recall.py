"""Finds the turns of a kept conversation that are about the question's subject, by words and recency."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from chapterverse.text import lexical
from chapterverse.text.tokens import cut_to_words
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.transcript import Conversation, Signer
from chapterverse_api.draft.requests import MAX_RECALLED_TOKENS, ChatMessage, estimate_tokens
from chapterverse_api.ext.conversations.records import StoredThread, StoredTurn

#: Most turns to recall, and most turns to read for that.
MAX_RECALLED_TURNS, MAX_READ_TURNS = 4, 60
#: Share of the question's words, by their rarity in the conversation, that a turn must hold.
_MIN_RECALLED_SHARE = 0.5
#: Turns after which one counts half as much as the newest.
_HALF_LIFE_TURNS = 20.0
#: Characters of each question and answer that is recalled.
_MAX_TEXT_CHARS = 400


def continue_thread(
    thread: StoredThread, query: ChatQuery, signer: Signer, turn_top_k: int = MAX_RECALLED_TURNS
) -> Conversation:
    """Return the conversation before a question, with the summary of its thread and its turns about the same subject.

    Args:
        turn_top_k: the most earlier turns to recall.
    """
    conversation = Conversation.from_query(query, signer, [(turn.question, turn.answer) for turn in thread.turns])
    recalled = _recall(thread.turns, query.query, conversation.messages, turn_top_k) if query.query else ""
    return replace(conversation, summary=thread.summary, recalled=recalled)


def _recall(kept: Sequence[StoredTurn], question: str, messages: Sequence[ChatMessage], top_k: int) -> str:
    """Return the turns that are about a question's subject, unless the prompt has them anyway.

    The best ones fill the turns' share of the tokens. They are returned in the order of the conversation.
    """
    present = {message.content for message in messages}
    turns = [turn for turn in kept if turn.question not in present and turn.answer not in present]
    recalled, remaining_tokens = dict[int, str](), float(MAX_RECALLED_TOKENS)
    for turn in find_relevant_turns(turns, question, top_k):
        asked, answered = (cut_to_words(text, _MAX_TEXT_CHARS) for text in (turn.question, turn.answer))
        text = f"Reader: {asked}\nAnswer: {answered}"
        remaining_tokens -= estimate_tokens(f"{text}\n\n")
        # A prompt takes as much of the best as it holds.
        if recalled and remaining_tokens < 0:
            break
        recalled[turn.number] = text
    return "\n\n".join(recalled[number] for number in sorted(recalled))


def find_relevant_turns(
    turns: Sequence[StoredTurn], question: str, top_k: int = MAX_RECALLED_TURNS
) -> tuple[StoredTurn, ...]:
    """Return the turns with most of a question's words, best first; the newest first among equals.

    Refused turns are left out, because they answer nothing.

    Args:
        turns: oldest first.
    """
    words = {word.surface: frozenset(word.terms) for word in lexical.words(question)}
    terms = [lexical.terms_of(lexical.words(f"{turn.question}\n{turn.answer}")) for turn in turns]
    counts = Counter(surface for turn_terms in terms for surface, word in words.items() if word & turn_terms)
    weights = {surface: math.log(1 + (1 + len(turns)) / (1 + counts[surface])) for surface in words}
    total = sum(weights.values())
    scores = dict[int, float]()
    for place, (turn, turn_terms) in enumerate(zip(turns, terms, strict=True)):
        share = sum(weights[surface] for surface, word in words.items() if word & turn_terms) / total if total else 0.0
        if share >= _MIN_RECALLED_SHARE and turn.status != "not_in_docs":
            scores[place] = share * 0.5 ** ((len(turns) - 1 - place) / _HALF_LIFE_TURNS)
    best = sorted(scores, key=lambda place: (-scores[place], -place))[:top_k]
    return tuple(turns[place] for place in best)
