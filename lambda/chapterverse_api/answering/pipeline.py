"""The pipeline: a question in, a cited and verified answer out. `answer_query` shows all of it, top to bottom."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Generator as Steps

from chapterverse.errors import ProviderError
from chapterverse_api import phrases
from chapterverse_api.answering.context import AnswerContext, Weights, about_selection, from_index, from_selection
from chapterverse_api.answering.resources import Resources
from chapterverse_api.answering.response import answer, refusal
from chapterverse_api.answering.turn import Turn
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.contract import ChatQuery, Delta, Events, Meta
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import Draft, Span
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.generation.refusal_filter import NotInDocs, refusable
from chapterverse_api.generation.stray_marks import without_marks
from chapterverse_api.grounding import FLOOR, verify
from chapterverse_api.grounding.links import Links


def answer_query(
    query: ChatQuery,
    resources: Resources,
    *,
    deadline: Deadline | None = None,
    origins: Collection[str] = (),
    turn_budget: TurnBudget | None = None,
) -> Events:
    """Yield `Meta`, the draft as `Delta`s, and last the verified `ChatResponse`.

    Args:
        deadline: until when, at the latest; 25 seconds from now where it is left out.
        origins: addresses that the reader's page may be of, besides the site's own.
        turn_budget: what the models may cost; no limit where it is left out.

    Raises:
        InputError: a filter names no known field, or the page is of another site.
        IndexFault: there is no index that can be read.
    """
    turn = Turn(query, resources, deadline or Deadline(), origins, turn_budget)
    turn.log_query()

    quoting = turn.models.generator.name == Extractive.name
    selected = about_selection if quoting else from_selection
    context = selected(turn) if query.selected_text else from_index(turn)
    _log_retrieval(turn, context)
    yield Meta(turn_id=turn.id, mode=context.mode, sources=list(context.sources))

    # First refusal: without evidence no generator is asked, whatever it would cost.
    if not context.task.passages:
        yield from turn.ended(refusal(context, turn))
        return

    # Second refusal: the generator was told to say so where the passages hold no answer.
    try:
        draft, failure = yield from _drafted(context, turn)
    except NotInDocs:
        yield from turn.ended(refusal(context, turn))
        return
    passages, weights = context.task.passages, Weights(context.snapshot)
    verified = verify(without_marks(draft, passages), passages, context.task.language, weights)
    # A selection needs no index.
    unweighed = "The index could not be reached any more; all words of the answer were weighed alike."
    unweighed = unweighed if weights.lost and context.retrieval_used else ""
    turn.log(
        "response_generated",
        generator="extractive" if failure else turn.models.generator.name,
        dropped_citations=verified.dropped,
    )

    # Last refusal: an answer in which no citation holds, or that hardly rests on what was sent, is no answer.
    cited = any(span.citations and span.text.strip() for span in verified.spans)
    degraded = " ".join(filter(None, (failure, turn.models.turn_budget.reason, context.degraded, unweighed))) or None
    if not cited or verified.confidence < FLOOR:
        yield from turn.ended(refusal(context, turn, degraded))
        return
    yield from turn.ended(answer(context, verified, degraded, turn, quoted=quoting or failure is not None))


def _log_retrieval(turn: Turn, context: AnswerContext) -> None:
    """Log what was found and by which parts; a part that failed is logged as an error and not as done."""
    turn.stages |= context.timings
    found = context.found
    failures = found.failures if found else {}
    for part, error in failures.items():
        turn.log_failure(part, error)
    if "embed" in context.timings and "embedder" not in failures:
        turn.log("embedding_generated", seconds=context.timings["embed"])
    turn.log("retrieval_performed", mode=context.mode, candidates=context.candidates)
    turn.log(
        "results_ranked",
        passages=len(context.task.passages),
        evidence=round(context.evidence, 4),
        algorithm=found.algorithm if found else None,
    )


def _drafted(context: AnswerContext, turn: Turn) -> Steps[Delta, None, tuple[Draft, str | None]]:
    """Stream the draft and return it, with the reason if quoting had to stand in for the generator."""
    links, models = Links(context.task.passages), turn.models
    framed = yield from _framed(context)
    try:
        with models.circuit.asking(NotInDocs), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
            draft = yield from _streamed(links.stream(refusable(models.generator.generate(context.task))))
    except ProviderError as error:
        turn.log_failure("generator", error)
        draft = yield from _streamed(links.stream(Extractive().generate(context.task)))
        return (*framed, *draft), "The answer is quoted, since the model failed."
    return (*framed, *draft), None


def _framed(context: AnswerContext) -> Steps[Delta, None, Draft]:
    """Say first what the reader must know of the passages."""
    if not context.other_language:
        return ()
    note = Span(f"{phrases.of(context.language).other_language}\n\n", kind="framing")
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
