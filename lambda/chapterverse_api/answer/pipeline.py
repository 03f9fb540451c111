"""The pipeline: a question in, a cited and verified answer out.

guard     `http.guard`, around the application: whether this request is answered at all
route     `http.routes`: what `http.admission` lets through, with the deadline of `http.answers`
service   `Service.chat`: the models that may be used for it, by `resources`, and the turn
search    `search`: the sources with enough evidence, or none, and the sections that the reader may mean
answer    `drafting`: quotes, or a draft of a model by a room; data by another
check     quotes hold by construction; what a model wrote, `ext.models` and `ext.check` hold to its sources
response  `response`: the whole, a refusal, or a question back

What a reader may ask next goes back to the search, because it depends on what the answer cites; so does a model that
looks again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from chapterverse.extensions import load_part
from chapterverse_api.answer.drafting import draft_answer, open_rounds, quote_documents, quote_winner
from chapterverse_api.answer.response import ask_back, make_answer_or_refusal, make_refusal, with_suggestions
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import AnswerEvent, ChatResponse, Events, Meta
from chapterverse_api.draft.draft import Writer


class _DataAnswer(Protocol):
    """Answers with data that fits one schema."""

    def answer(self, turn: Turn, writer: Writer) -> Generator[AnswerEvent, None, ChatResponse | None]:
        """Answer with data; return None if the model gave none that fits."""
        ...


def answer_turn(turn: Turn) -> Events:
    """Yield `Meta`, calls of tools, each checked segment as a `Delta`, and last the `ChatResponse` of these.

    Raises:
        InputError: a filter names no known field, the page is of another site, or data can't be had in this form.
        IndexFault: there is no index that can be read.
    """
    data = load_part("schemas")(turn.query.output, turn.resources) if turn.query.output else None
    with turn.running():
        turn.search()
        yield Meta(turn_id=turn.id, mode=turn.sources.mode, sources=list(turn.sources.shown))
        response = yield from _answer(turn, data)
        yield from turn.end(with_suggestions(response, turn))


def _answer(turn: Turn, data: _DataAnswer | None) -> Generator[AnswerEvent, None, ChatResponse]:
    rounds = open_rounds(turn)
    has_site_tools = rounds is not None and rounds.has_site_tools
    # Without evidence no generator runs, not even one that costs nothing.
    if not (turn.sources.request.passages or has_site_tools):
        return make_refusal(turn, turn.explain_degradation())
    if turn.sources.found.choices and not has_site_tools:
        return ask_back(turn, turn.explain_degradation())
    # Without a writer the budget is used up, and the answer is quoted as any other.
    writer = turn.models.writer if data else None
    if data and writer:
        if rounds and has_site_tools:
            yield from rounds.run_all()
        if response := (yield from data.answer(turn, writer)):
            return response
    if turn.sources.found.winner:
        draft = yield from quote_winner(turn)
    else:
        draft = yield from quote_documents(turn) if writer else draft_answer(turn, rounds)
    return make_answer_or_refusal(draft, turn)
