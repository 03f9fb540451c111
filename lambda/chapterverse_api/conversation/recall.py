"""Finds the turns of a kept conversation that are about the question's subject, by words and recency."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from chapterverse.text import lexical
from chapterverse_api.records.protocols import StoredTurn

#: Turns that are recalled at most, of so many that are read.
MAX_RECALLED_TURNS, MAX_READ_TURNS = 4, 60
#: Share of the question's words, by their rarity in the conversation, that a turn must hold.
MIN_SHARE = 0.5
#: Turns after which one counts half as much as the newest.
HALF_LIFE_TURNS = 20.0


def find_relevant_turns(
    turns: Sequence[StoredTurn], question: str, top_k: int = MAX_RECALLED_TURNS
) -> tuple[StoredTurn, ...]:
    """Return the turns that hold most of a question's words, best first; of those that hold as many, the newest.

    A turn that was refused answers nothing, so it is left out.

    Args:
        turns: oldest first.
    """
    asked = {word.surface: frozenset(word.terms) for word in lexical.words(question)}
    terms = [lexical.terms_of(lexical.words(f"{turn.question}\n{turn.answer}")) for turn in turns]
    counts = Counter(surface for held in terms for surface, word in asked.items() if word & held)
    weights = {surface: math.log(1 + (1 + len(turns)) / (1 + counts[surface])) for surface in asked}
    whole = sum(weights.values())
    scores = dict[int, float]()
    for place, (turn, held) in enumerate(zip(turns, terms, strict=True)):
        share = sum(weights[surface] for surface, word in asked.items() if word & held) / whole if whole else 0.0
        if share >= MIN_SHARE and turn.status != "not_in_docs":
            scores[place] = share * 0.5 ** ((len(turns) - 1 - place) / HALF_LIFE_TURNS)
    best = sorted(scores, key=lambda place: (-scores[place], -place))[:top_k]
    return tuple(turns[place] for place in best)
