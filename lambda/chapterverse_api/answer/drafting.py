"""Answers by quotes, and leaves to its room what a model writes.

A quote is verbatim from the passage that it cites, so its citation holds by construction.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from chapterverse.extensions import load_part
from chapterverse.text.markdown import INVISIBLE, escape_markdown
from chapterverse_api import phrases
from chapterverse_api.answer.response import make_delta
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import Delta, ToolUse
from chapterverse_api.draft.draft import ShownDraft, Span
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.draft.requests import GenerationRequest, Passage

#: The name of what quotes a text that was looked up.
_CURATED = "faq"
_QUOTED = "The answer is quoted, since the model failed."
_FAILED = "The model failed."

#: What a renderer may take for a link, an image or HTML, and what shows as nothing.
_MARKUP = re.compile(rf"\][(\[:]|!\[|<(?![ \t\n=\-<0-9]|\Z)|[\x00-\x08\x0b-\x1f\x7f-\x9f{INVISIBLE}\ufe00-\ufe0f]")

#: Yields what the reader sees of a draft, calls of tools included, and returns the draft.
DraftSteps: TypeAlias = Generator[Delta | ToolUse, None, ShownDraft]


class ToolRounds(Protocol):
    """The rounds in which a model may call tools in place of an answer.

    Attributes:
        has_site_tools: whether the model may find something that the documentation does not hold.
    """

    @property
    def has_site_tools(self) -> bool: ...

    def run_all(self) -> Generator[ToolUse, None, None]:
        """Let the generator call tools for data, which can't be written in the same request."""
        ...


def open_rounds(turn: Turn) -> ToolRounds | None:
    """Return the rounds in which the model may look again; None without a model or without a search."""
    has_rounds = turn.models.writer and turn.sources.retrieval
    rounds: ToolRounds | None = load_part("tool_rounds")(turn) if has_rounds else None
    return rounds


def draft_answer(turn: Turn, rounds: ToolRounds | None) -> DraftSteps:
    """Quote, or let the generator write.

    Args:
        rounds: those in which it may call tools in place of an answer.
    """
    if not turn.models.only_quotes:
        steps: DraftSteps = load_part("write_draft")(turn, rounds)
        return (yield from steps)
    request = turn.sources.request
    with turn.timing("generate"):
        quotes = [*Extractive().generate(request)]
    return (yield from _show(quotes, turn, request, ShownDraft((), Extractive.name, quoted=True)))


def quote_documents(turn: Turn, why: str = _QUOTED) -> DraftSteps:
    """Quote the documentation for this reason. Without passages that may answer there is nothing to quote."""
    # The budget has a reason of its own.
    reason = None if turn.models.spending.reason else why
    documents = turn.sources.documents
    if not documents.may_be_quoted:
        return ShownDraft((), turn.models.generator.name, reason and _FAILED)
    quotes = [*Extractive().generate(documents.request)]
    return (yield from _show(quotes, turn, documents.request, ShownDraft((), Extractive.name, reason, quoted=True)))


def quote_winner(turn: Turn) -> DraftSteps:
    """Quote the text that is the answer, word for word and under its authors' name."""
    request, curated = turn.sources.request, phrases.for_language(turn.sources.language).curated
    (entry,) = request.passages
    path = " › ".join(map(escape_markdown, entry.path))
    framing = [Span(f"{text}\n\n", kind="framing") for text in (curated, f"**{path}**")]
    quotes = [*framing, Span(entry.section, (entry.id,), kind="quote")]
    return (yield from _show(quotes, turn, request, ShownDraft((), _CURATED, quoted=True)))


def introduce(turn: Turn) -> list[Span]:
    """Return the note that begins an answer if the passages are in another language."""
    sources = turn.sources
    note = f"{phrases.for_language(sources.language).other_language}\n\n"
    return [Span(note, kind="framing")] if sources.other_language else []


def _show(quotes: Sequence[Span], turn: Turn, request: GenerationRequest, draft: ShownDraft) -> DraftSteps:
    """Yield quotes, and return the draft with them.

    Pages are written by others, so quotes that hold markup are read as a model's draft is.
    """
    if any(_holds_markup(span, request.passages) for span in quotes):
        steps: DraftSteps = load_part("check_quotes")(quotes, turn, request, draft)
        return (yield from steps)
    confirmed = (replace(span, check="confirmed") if span.kind == "quote" else span for span in quotes)
    spans = (*introduce(turn), *confirmed) if quotes else ()
    yield from map(make_delta, spans)
    return replace(draft, spans=spans)


def _holds_markup(span: Span, passages: Sequence[Passage]) -> bool:
    """Whether a text holds markup other than our own links to its section and those below."""
    text = span.text
    for passage in passages:
        if passage.id in span.citations:
            for url in (passage.url or "", *(below.url for below in passage.subsections)):
                text = text.replace(f"]({url})", "") if "://" in url else text
    return _MARKUP.search(text) is not None
