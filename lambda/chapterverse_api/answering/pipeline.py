"""The pipeline: a question in, a cited and verified answer out. Read `ask` top to bottom and you know the system."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Generator as Steps
from typing import TYPE_CHECKING

from chapterverse.errors import ProviderError
from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, from_index, from_selection
from chapterverse_api.answering.response import answer, refusal
from chapterverse_api.answering.turn import Turn
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.contract import ChatQuery, Delta, Meta
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import Draft, Span
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.refusal_filter import NotInDocs, refusable
from chapterverse_api.generation.stray_marks import without_marks
from chapterverse_api.grounding import FLOOR, verify
from chapterverse_api.grounding.links import Links
from chapterverse_api.http.sse import Events

if TYPE_CHECKING:
    from chapterverse_api.service import Service


def ask(
    query: ChatQuery,
    service: Service,
    *,
    deadline: Deadline | None = None,
    origins: Collection[str] = (),
    turn_budget: TurnBudget | None = None,
) -> Events:
    """Yield `Meta`, the draft as `Delta`s, and last the verified `ChatResponse`.

    Args:
        cutoff: until when, at the latest; 25 seconds from now where it is left out.
        origins: addresses that the reader's page may be of, besides the site's own.
        allowance: what the models may cost; no limit where it is left out.

    Raises:
        InputError: a filter names no known field, or the page is of another site.
        IndexFault: there is no index that can be read.
    """
    turn = Turn(query, service, deadline or Deadline(), origins, turn_budget)
    turn.log_query()

    material = from_selection(turn) if query.selected_text else from_index(turn)
    turn.log_retrieval(material)
    yield Meta(turn_id=turn.id, mode=material.mode, sources=list(material.sources))

    # First refusal: without evidence no generator is asked, whatever it would cost.
    if not material.task.passages:
        yield from turn.ended(refusal(material, turn))
        return

    # Second refusal: the generator was told to say so where the passages hold no answer.
    try:
        draft, failure = yield from _drafted(material, turn)
    except NotInDocs:
        yield from turn.ended(refusal(material, turn))
        return
    passages = material.task.passages
    verified = verify(without_marks(draft, passages), passages, material.task.language, material.weigh)
    turn.log(
        "response_generated",
        generator="extractive" if failure else turn.means.generator.name,
        dropped_citations=verified.dropped,
    )

    # Last refusal: an answer in which no citation holds, or that hardly rests on what was sent, is no answer.
    cited = any(span.citations and span.text.strip() for span in verified.spans)
    degraded = " ".join(filter(None, (failure, turn.means.turn_budget.reason, material.degraded))) or None
    if not cited or verified.confidence < FLOOR:
        yield from turn.ended(refusal(material, turn, degraded))
        return
    yield from turn.ended(answer(material, verified, degraded, turn))


def _drafted(material: AnswerContext, turn: Turn) -> Steps[Delta, None, tuple[Draft, str | None]]:
    """Stream the draft and return it, with the reason if quoting had to stand in for the generator."""
    links, means = Links(material.task.passages), turn.means
    framed = yield from _framed(material)
    try:
        with means.circuit.asking(NotInDocs), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
            draft = yield from _streamed(links.stream(refusable(means.generator.generate(material.task))))
    except ProviderError as error:
        turn.log_failure("generator", error)
        draft = yield from _streamed(links.stream(Extractive().generate(material.task)))
        return (*framed, *draft), "The answer is quoted, since the model failed."
    return (*framed, *draft), None


def _framed(material: AnswerContext) -> Steps[Delta, None, Draft]:
    """Say first what the reader must know of the passages."""
    if not material.other_language:
        return ()
    note = Span(f"{phrases.of(material.language).other_language}\n\n", framing=True)
    yield Delta(text=note.text)
    return (note,)


def _streamed(steps: Steps[str, None, Draft]) -> Steps[Delta, None, Draft]:
    while True:
        try:
            text = next(steps)
        except StopIteration as end:
            draft: Draft = end.value
            return draft
        yield Delta(text=text)
