"""Finds the turns of a kept conversation that are about the question's subject, by words and recency."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from chapterverse.text import lexical
from chapterverse_api.records.protocols import StoredTurn

#: Most turns to recall, and most turns to read for that.
MAX_RECALLED_TURNS, MAX_READ_TURNS = 4, 60
#: Share of the question's words, by their rarity in the conversation, that a turn must hold.
MIN_SHARE = 0.5
#: Turns after which one counts half as much as the newest.
HALF_LIFE_TURNS = 20.0


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
        if share >= MIN_SHARE and turn.status != "not_in_docs":
            scores[place] = share * 0.5 ** ((len(turns) - 1 - place) / HALF_LIFE_TURNS)
    best = sorted(scores, key=lambda place: (-scores[place], -place))[:top_k]
    return tuple(turns[place] for place in best)
