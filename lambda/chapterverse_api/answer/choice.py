"""Asks back where a question fits several sections: the reader chooses the one that is meant.

A choice is offered only if a search for each of its texts finds that section first. It is never offered twice in a row,
so whoever asks the same again gets an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from chapterverse.errors import IndexFault
from chapterverse.model import Chunk
from chapterverse_api import phrases
from chapterverse_api.answer.response import MAX_SUGGESTION_CHARS, finds_first, make_response, plain_heading
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import ChatResponse, Segment
from chapterverse_api.conversation.transcript import REPORTED
from chapterverse_api.search.choice import find_choices

_QUESTIONS = frozenset(phrases.for_language(tag).choice for tag in phrases.PHRASE_LANGUAGES)
#: How a section is named: by its page, by the section above it, or by all of its headings.
_WORDINGS: tuple[Callable[[Chunk], Sequence[str]], ...] = (
    lambda chunk: (chunk.chapter_title, *chunk.heading_path[-1:]),
    lambda chunk: chunk.heading_path[-2:],
    lambda chunk: chunk.heading_path,
)


def ask_back(turn: Turn, degraded: str | None) -> ChatResponse | None:
    """Return the choice between the sections that a question fits; None if one fits best."""
    sources = turn.sources
    follows_up = sources.searched_as is not None and sources.searched_as.reason == "follow_up"
    if sources.retrieval is None or sources.winner or follows_up or turn.query.selected_text or turn.query.output:
        return None
    if turn.conversation.messages and turn.conversation.messages[-1].content.removeprefix(REPORTED) in _QUESTIONS:
        return None
    texts = list[str]()
    # The generation may have been deleted by now.
    with suppress(IndexFault):
        texts = _name(turn, find_choices(sources.retrieval))
    # Who writes such a text means the section that it names.
    if not texts or (turn.query.query or "").strip() in texts:
        return None
    return make_response(
        turn,
        [Segment(text=phrases.for_language(sources.language).choice, kind="framing")],
        source_chunks=[],
        status="degraded" if degraded else "partial",
        partial_reason="choice",
        grounding_confidence=0.0,
        sources_cited=[],
        follow_ups=texts,
        degraded_reason=degraded,
    )


def _name(turn: Turn, chunks: Sequence[Chunk]) -> list[str]:
    """Return a text for each section, all of one wording; none if no wording tells them apart."""
    for wording in _WORDINGS:
        texts = [" › ".join(plain_heading(heading) for heading in wording(chunk)) for chunk in chunks]
        if len({*texts}) == len(texts) > 1 and max(map(len, texts)) <= MAX_SUGGESTION_CHARS:
            pairs = zip(texts, chunks, strict=True)
            return texts if all(finds_first(turn, text, chunk) for text, chunk in pairs) else []
    return []
