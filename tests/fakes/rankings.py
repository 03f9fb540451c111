"""Rankings by shared words, the answers of fake reranking models."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from fakes.loopback import Fault, Refusal


def relevance(question: str, text: str) -> float:
    """Return the share of common words of two texts, 0 to 1 (Dice coefficient)."""
    asked, said = (set(re.findall(r"\w+", t.lower())) for t in (question, text))
    return 2 * len(asked & said) / (len(asked) + len(said) or 1)


def results(question: str, texts: Sequence[str], top_n: int | None) -> list[dict[str, Any]]:
    """Return `results` as documented, best first; reject the lists that the real service rejects, with its messages."""
    if not texts:
        raise Refusal(400, "invalid request: list of documents must not be empty")
    if not any(text.strip() for text in texts):
        raise Refusal(400, "invalid request: list of documents must not contain only empty strings or only whitespace")
    found = [{"index": i, "relevance_score": relevance(question, text)} for i, text in enumerate(texts)]
    return sorted(found, key=lambda result: -result["relevance_score"])[:top_n]


def with_results(change: Callable[[list[Any]], Any]) -> Fault:
    """A reply of status 200 whose `results` went through `change`."""
    return Fault(change=lambda reply: {**reply, "results": change(reply["results"])})
