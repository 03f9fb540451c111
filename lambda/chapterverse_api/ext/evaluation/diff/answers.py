"""Asks both indexes the same questions and compares the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from chapterverse.errors import ProviderError
from chapterverse.progress import Progress, track
from chapterverse_api.commands import ServiceSession
from chapterverse_api.ext.evaluation.diff.sections import IndexedSite, RemainingText, SectionChange, key
from chapterverse_api.ext.evaluation.questions import QuestionRow

Outcome: TypeAlias = Literal["lost", "appeared", "changed", "same"]

#: What an answer that is shown with a reservation says of itself.
_HEDGED = ("may_help", "language", "choice")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer.

    Attributes:
        state: how far it answers.
        text: the quotes; "" for a refusal.
        quote: the part that answers, as far as it is known.
        passage: the first quote, whole.
        cited: the addresses of its sources, without the host.
        chunk_ids: of its sources, in the order of the quotes.
    """

    state: Literal["answered", "hedged", "refused"]
    text: str = ""
    quote: str = ""
    passage: str = ""
    cited: tuple[str, ...] = ()
    chunk_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A question and its two answers.

    Attributes:
        reason: why the answer counts as lost, as a sentence; "" if it doesn't.
        section: the touched section that it hangs on; None if none of those that were cited is touched.
    """

    question: QuestionRow
    before: GivenAnswer
    now: GivenAnswer
    outcome: Outcome
    reason: str = ""
    section: SectionChange | None = None


def from_headings(sections: Sequence[SectionChange]) -> list[QuestionRow]:
    """Return a question for each touched section with a heading: its heading, after the page's title."""
    rows = {": ".join(dict.fromkeys((s.key[1][0], s.key[1][-1]))): s for s in sections if s.key[1]}
    return [QuestionRow(id=text, question=text, place=s.url) for text, s in rows.items()]


def ask(questions: Sequence[QuestionRow], session: ServiceSession, report: Progress, stage: str) -> list[GivenAnswer]:
    """Return the answer to each question.

    Raises:
        InputError: a question is invalid; the message names its row.
        ProviderError: a part of the system failed, so the answers would be those of another system.
    """
    answers = []
    for question in track(report, stage, questions):
        with question.named():
            response = session.answer(query=question.question, conversation_history=question.history)
        if reason := response["degraded_reason"]:
            raise ProviderError(f"{question.place}: the answers can't be compared: {reason}", retryable=True)
        answers.append(_read_answer(response))
    return answers


def _read_answer(response: Mapping[str, Any]) -> GivenAnswer:
    if response["status"] == "not_in_docs":
        return GivenAnswer("refused")
    segments = response["segments"]
    quotes = [s for s in segments if s["kind"] == "quote"] or [s for s in segments if s["citations"]]
    sources = {s["id"]: s for s in response["source_chunks"]}
    used = [sources[i] for i in dict.fromkeys(i for s in quotes for i in s["citations"]) if i in sources]
    first = quotes[0] if quotes else {}
    return GivenAnswer(
        state="hedged" if response.get("partial_reason") in _HEDGED else "answered",
        text="\n\n".join(s["text"].strip() for s in quotes) or response["response"],
        quote=first.get("mark") or first.get("text", ""),
        passage=first.get("text", ""),
        cited=tuple(dict.fromkeys(_place(s["url"] or "") for s in used)),
        chunk_ids=tuple(s["chunk_id"] or "" for s in used),
    )


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}#{parts.fragment}" if parts.fragment else parts.path


def compare(
    questions: Sequence[QuestionRow],
    answers: tuple[Sequence[GivenAnswer], Sequence[GivenAnswer]],
    sites: tuple[IndexedSite, IndexedSite],
    sections: Sequence[SectionChange],
) -> list[Change]:
    """Return what became of each answer."""
    remaining, by_key = RemainingText(*sites), {section.key: section for section in sections}
    changes = []
    for question, before, now in zip(questions, *answers, strict=True):
        outcome: Outcome = "same" if (before.text, before.state) == (now.text, now.state) else "changed"
        if before.state != "answered" and now.state == "answered":
            outcome = "appeared"
        if reason := _loss(question.question, before, now, remaining):
            outcome = "lost"
        cited = [(site, i) for site, answer in zip(sites, (before, now), strict=True) for i in answer.chunk_ids]
        places = [key(site.by_id[i]) for site, i in cited if i in site.by_id]
        section = next((by_key[place] for place in places if place in by_key), None)
        changes.append(Change(question, before, now, outcome, reason, section))
    return changes


def _loss(question: str, before: GivenAnswer, now: GivenAnswer, remaining: RemainingText) -> str:
    """Return why an answer is lost, "" if it isn't: what was hedged or refused before can't be lost."""
    if before.state != "answered":
        return ""
    if now.state == "refused":
        return "It is refused now."
    # The same words with a reservation are no loss: a question at the border gets it by any change.
    chunk_id = before.chunk_ids[0] if before.chunk_ids else ""
    language = remaining.language(chunk_id)
    if now.state == "hedged" and not remaining.says(before.quote, [now.text], question, language):
        return "It is only shown with a reservation now, and in other words."
    if before.quote and not remaining.holds(before.quote, before.passage, chunk_id, question, now.text):
        return "What answered it is no longer in the docs."
    return ""
