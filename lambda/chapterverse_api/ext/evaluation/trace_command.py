"""Command `trace`: shows how one question was answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.parameters import argument, option, print_json, settings_from
from chapterverse.text.shortening import ellipsize
from chapterverse_api.answering.resources import Resources
from chapterverse_api.commands.ask import conversation_from, heading_line
from chapterverse_api.commands.session import without_none
from chapterverse_api.ext.evaluation.trace import trace_answer
from chapterverse_api.validation import make_query

#: Why a candidate is no source, by the stage that left it out.
_OMISSIONS = {
    "verdict": "the docs hold no answer",
    "evidence": "too little evidence",
    "unsure": "only the best of an unsure answer are sources",
    "section": "a better one is of the same section, or has the same text",
    "limit": "there are enough sources",
    "relevance": "its section says hardly anything of the question",
    "budget": "the passages before it fill the budget",
}
#: Candidates that are shown after the last source.
_FURTHER_ROWS = 5
#: Characters that a sentence is shown by.
_MAX_SENTENCE_CHARS = 100

#: What the verdict rests on.
_PROBABILITIES = ("answerability", "first page", "evidence", "floor")


def trace(
    question: str = argument("What to ask.", "QUESTION", default=...),
    page_url: str | None = option("The reader's page."),
    history: parameters.History = None,
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.ServiceFlags],
) -> None:
    """Show how a question is answered.

    Shows the searched words, the components of each candidate's rank, why candidates were left out, and the check's
    result for each sentence. Answers as `ask` does.
    """
    resources = Resources.open(settings_from(**flags))
    fields = {"query": question, "page_url": page_url, "conversation_history": conversation_from(history)}
    traced = trace_answer(resources, make_query(**without_none(fields)))
    if as_json:
        print_json(traced)
        return
    for line in (*_question(traced), *_search(traced), *_sentences(traced)):
        typer.echo(line)


def _question(document: Mapping[str, Any]) -> Iterator[str]:
    response, retrieval = document["response"], document["retrieval"]
    yield _row("question", document["question"])
    if searched := response["searched_as"]:
        yield _row("follows up on" if searched["reason"] == "follow_up" else "corrected to", searched["query"])
    steps = " → ".join(step["state"] for step in document["states"])
    yield _row("states", f"{steps}, attempts: {document['attempts']}, seconds: {document['states'][-1]['seconds']:.3f}")
    yield _row("models", f"embedder {document['model'] or 'none'}, generator {document['generator']}")
    if retrieval:
        if retrieval["subject"] != retrieval["searched"]:
            yield _row("words searched", retrieval["subject"])
        if unknown := retrieval["unknown_words"]:
            yield _row("not in the docs", ", ".join(unknown))
        for words, stems in retrieval["synonyms"].items():
            yield _row("synonyms", f"{words}: {', '.join(stems)}")
        yield _row("algorithm", retrieval["algorithm"])
        figures = ", ".join(f"{name} {retrieval[name]:.2f}" for name in _PROBABILITIES)
        yield _row("answerable", f"{retrieval['verdict']}: {figures}")
        for part, error in retrieval["failures"].items():
            yield _row(f"{part} failed", error)
    for use in document["tools"]:
        what = f"{use['name']} {use['query'] or ''}".strip()
        yield _row("looked up", what if use["ok"] else f"{what}, in vain")
    yield _row("answer", f"{response['status']}, confidence {response['grounding_confidence']:.2f}")
    if response["degraded_reason"]:
        yield _row("degraded", response["degraded_reason"])


def _search(document: Mapping[str, Any]) -> Iterator[str]:
    retrieval = document["retrieval"]
    if entry := document["faq"]:
        yield f"\nThe FAQ entry {entry['source_file_path']}: {entry['section']}"
        yield f"answers with a probability of {entry['probability']:.2f}: {_features(entry)}"
        return
    if entry := document["nearest_faq"]:
        yield f"\nThe nearest FAQ entry {entry['source_file_path']}: {entry['section']}"
        too_low = entry["probability"] < entry["least"]
        why = f"less than {entry['least']:.2f}" if too_low else "but the question refers to an earlier one"
        yield f"does not answer, with a probability of {entry['probability']:.2f}, {why}: {_features(entry)}"
    if not retrieval:
        yield "\nNothing was searched."
        return
    candidates = retrieval["candidates"]
    row_count = 1 + max((at for at, one in enumerate(candidates) if one["source"]), default=-1) + _FURTHER_ROWS
    yield f"\n{retrieval['total']} candidates, {sum(bool(one['source']) for one in candidates)} sources"
    yield from _table(candidates[:row_count])
    if candidates[row_count:]:
        yield f"{len(candidates) - row_count} more are in --json."
    for memory in document["memories"]:
        parts = ", ".join(f"{name} {memory['components'][name]:.2f}" for name in ("importance", "recency"))
        role = f"source [{memory['source']}]" if memory["source"] else "tells a model"
        yield f"memory {memory['source_file_path']}, {role}: evidence {memory['evidence']:.2f}, {parts}"


def _table(candidates: Sequence[dict[str, Any]]) -> Iterator[str]:
    if candidates:
        yield "\n  #  rank  evidence  source  section"
    for place, one in enumerate(candidates, 1):
        source = f"[{one['source']}]" if one["source"] else "-"
        yield f"{place:3}  {one['rank']:.2f}  {one['evidence']:8.2f}  {source:6}  {heading_line(one)}"
        yield f"                             {_parts(one)}"
        if one["omitted"]:
            yield f"                             left out: {_OMISSIONS[one['omitted']]}"


def _features(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in entry["features"].items())


def _parts(candidate: Mapping[str, Any]) -> str:
    """Return what a rank is made of."""
    components = candidate["components"]
    if "rerank" in components:
        return f"rerank {components['rerank']:.2f}"
    parts = [f"{name} {value:+.2f}" for name, value in candidate["contributions"].items()]
    parts += [f"{name} {components[name]:.2f}" for name in ("importance", "recency") if name in components]
    return ", ".join(parts) or "nothing"


def _sentences(document: Mapping[str, Any]) -> Iterator[str]:
    if not document["sentences"]:
        yield "\nNo sentence was checked."
        return
    yield "\ncheck        probability  citations  sentence"
    for one in document["sentences"]:
        probability = "-" if one["probability"] is None else f"{one['probability']:.2f}"
        citations = " ".join(f"[{i}]" for i in one["citations"]) or "-"
        dropped = " ".join(f"[{i}]" for i in one["claimed"] if i not in one["citations"])
        text = ellipsize(" ".join(one["text"].split()), _MAX_SENTENCE_CHARS)
        yield f"{one['check']:12} {probability:11}  {citations:9}  {text}"
        if dropped:
            yield f"{'':37}dropped: {dropped}, sources: {one['outcome']}"


def _row(name: str, text: str) -> str:
    return f"{name:16} {text}"
