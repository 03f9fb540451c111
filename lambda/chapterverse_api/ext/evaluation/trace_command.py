"""Command `trace`: shows how one question was answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import typer

from chapterverse.calibration import count_terms
from chapterverse.cli import parameters
from chapterverse.cli.parameters import argument, option, print_json, settings_from
from chapterverse.model import FAQ, MEMORY, Head
from chapterverse.store import Snapshot
from chapterverse.text import lexical, thesaurus
from chapterverse.text.tokens import ellipsize
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.resources import Resources
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.commands import conversation_from, heading_line, without_none
from chapterverse_api.contract import ChatQuery, ChatResponse
from chapterverse_api.draft.draft import ShownDraft
from chapterverse_api.ext.check.results import CheckedSentence
from chapterverse_api.rejections import make_query
from chapterverse_api.search.ranking import MAX_SUM, RANK_WEIGHTS, Candidate
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import reader_filter

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
#: Components of memories.
_WEIGHTS = ("importance", "recency")
#: What the verdict rests on.
_PROBABILITIES = ("answerability", "first page", "evidence", "floor")


def trace_answer(resources: Resources, query: ChatQuery) -> dict[str, Any]:
    """Answer a question as `answer` does, and return the document of `trace --json`.

    states       each state with the seconds until it
    faq          the entry that answered, or None
    nearest_faq  the likeliest entry if none answered, with the `least` probability of an answer, or None
    memories     the memories that informed a model
    retrieval    None without a search, else what was searched, and the candidates, each with its `source` id or the
                 stage that `omitted` it

    Raises:
        InputError: a filter names no known field, or the page is of another site.
        IndexFault: no index can be read.
    """
    turn = Turn.open(query, resources)
    *_, response = answer_turn(turn)
    assert isinstance(response, ChatResponse)
    progress, sources = turn.progress, turn.sources
    winner = sources.found.winner.candidates[0] if sources.found.winner else None
    return {
        "query_id": progress.id,
        "question": query.query,
        "state": progress.state,
        "states": [{"state": state, "seconds": seconds} for state, seconds in progress.history],
        "attempts": progress.attempts,
        "created_at": progress.created_at,
        "processed_at": progress.processed_at,
        "model": progress.model,
        "generator": resources.models.generator.name,
        "faq": _faq(winner) if winner and winner.chunk.type == FAQ else None,
        "nearest_faq": _nearest_faq(query, sources, resources),
        "memories": _memories(sources),
        "retrieval": _retrieval(sources, resources),
        "tools": [use.model_dump(mode="json") for use in sources.tool_uses],
        "sentences": list(_sentence_checks(turn.draft)) if turn.draft else [],
        "response": response.model_dump(mode="json"),
    }


def _sentence_checks(draft: ShownDraft) -> Iterator[dict[str, Any]]:
    """Yield what the check says of each sentence. A quote that needed none says what its source says."""
    yield from (check.as_json() for check in draft.checks)
    for span in () if draft.checks else draft.spans:
        if span.kind == "quote":
            yield CheckedSentence.of_quote(span).as_json()


def _nearest_faq(query: ChatQuery, sources: Sources, resources: Resources) -> dict[str, Any] | None:
    """Return the likeliest FAQ entry, which did not answer, and the least probability with which it would have."""
    snapshot = sources.snapshot
    if sources.retrieval is None or snapshot is None or not resources.index.uses(FAQ, snapshot):
        return None
    # Lazy: few sites have a FAQ.
    from chapterverse_api.ext.knowledge.faq import least_probability, nearest_entry

    match = nearest_entry(query.query or "", snapshot, reader_filter(query, snapshot, resources.index))
    return _faq(match.candidate) | {"least": least_probability()} if match else None


def _memories(sources: Sources) -> list[dict[str, Any]]:
    ids = {source.chunk_id: source.id for source in sources.shown}
    return [
        {
            "source_file_path": memory.chunk.source_file_path,
            "rank": round(memory.score, 4),
            "evidence": round(memory.evidence, 4),
            "components": _round(memory.components),
            "source": ids.get(memory.chunk.chunk_id),
        }
        for memory in sources.found.looked_up
        if memory.chunk.type == MEMORY
    ]


def _unknown_words(text: str, snapshot: Snapshot) -> list[str]:
    """Return the words of a question that no chunk of the index holds, in order."""
    terms_by_word: dict[str, set[int]] = {}
    for word in lexical.question_words(text, snapshot.head.languages):
        terms_by_word.setdefault(word.surface, set()).update(word.terms)
    counts = count_terms(set().union(*terms_by_word.values()), snapshot)
    return [word for word, word_terms in terms_by_word.items() if not any(counts[term] for term in word_terms)]


def _synonyms(retrieval: Retrieval) -> dict[str, list[str]]:
    """Return the stems that were also searched for, by the words of the question that they stand for."""
    searched_terms = {synonym.term for synonym in retrieval.question.synonyms}
    stems_by_words = {
        " ".join(entry.words): [stem for stem in entry.synonyms if lexical.hash_term(stem) in searched_terms]
        for entry in thesaurus.find_synonyms(retrieval.subject)
    }
    return {words: stems for words, stems in stems_by_words.items() if stems}


def _faq(entry: Candidate) -> dict[str, Any]:
    """Return a FAQ entry with its probability, and the features from which that was computed."""
    return {
        "source_file_path": entry.chunk.source_file_path,
        "section": entry.chunk.section_heading,
        "probability": round(entry.evidence, 4),
        "features": _round(entry.components),
    }


def _retrieval(sources: Sources, resources: Resources) -> dict[str, Any] | None:
    """Return the query and the results; None without a search."""
    retrieval, snapshot = sources.retrieval, sources.snapshot
    if retrieval is None or snapshot is None:
        return None
    return {
        "searched": retrieval.searched,
        "subject": retrieval.subject,
        "unknown_words": _unknown_words(retrieval.subject, snapshot),
        "synonyms": _synonyms(retrieval),
        "algorithm": retrieval.algorithm,
        "verdict": retrieval.verdict,
        "answerability": round(retrieval.answerability.docs, 4),
        "first page": round(retrieval.answerability.first, 4),
        "evidence": round(retrieval.evidence, 4),
        "floor": retrieval.calibration.floor,
        "failures": {part: str(error) for part, error in retrieval.failures.items()},
        "timings": {stage: round(seconds, 6) for stage, seconds in retrieval.timings.items()},
        "total": retrieval.total,
        "candidates": list(_candidates(sources, retrieval, snapshot.head, resources)),
    }


def _candidates(sources: Sources, retrieval: Retrieval, head: Head, resources: Resources) -> Iterator[dict[str, Any]]:
    ids = {source.chunk_id: source.id for source in sources.shown}
    for candidate in retrieval.candidates:
        chunk = candidate.chunk
        yield {
            "rank": round(candidate.score, 4),
            "evidence": round(candidate.evidence, 4),
            "chapter": chunk.chapter_title,
            "section": chunk.section_heading,
            "url": resources.index.public_url(chunk, head),
            "chunk_id": chunk.chunk_id,
            "type": chunk.type,
            "components": _round(candidate.components),
            "contributions": _round(_contributions(candidate.components)),
            "source": ids.get(chunk.chunk_id),
            # What was left out at first may be a source after all: it stands beside the best one, or was looked up.
            "omitted": None if chunk.chunk_id in ids else sources.found.omissions.get(chunk.chunk_id),
        }


def _contributions(components: Mapping[str, float]) -> dict[str, float]:
    """Return what each component adds to a score of 0 to 1, without those that add nothing.

    The rest of the score is what a reranker, a memory or a second search made of it.
    """
    added = {"fused": components.get("fused", 0.0) / MAX_SUM}
    added |= {name: weight * components.get(name, 0.0) / MAX_SUM for name, weight in RANK_WEIGHTS.items()}
    added["side"] = components.get("side", 0.0)
    return {name: value for name, value in added.items() if value}


def _round(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


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
    for name, text in _question(traced):
        typer.echo(f"{name:16} {text}")
    for line in (*_search(traced), *_sentences(traced)):
        typer.echo(line)


def _question(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    response, retrieval = document["response"], document["retrieval"]
    yield "question", document["question"]
    if searched := response["searched_as"]:
        yield "follows up on" if searched["reason"] == "follow_up" else "corrected to", searched["query"]
    steps = " → ".join(step["state"] for step in document["states"])
    yield "states", f"{steps}, attempts: {document['attempts']}, seconds: {document['states'][-1]['seconds']:.3f}"
    yield "models", f"embedder {document['model'] or 'none'}, generator {document['generator']}"
    if retrieval:
        if retrieval["subject"] != retrieval["searched"]:
            yield "words searched", retrieval["subject"]
        if unknown := retrieval["unknown_words"]:
            yield "not in the docs", ", ".join(unknown)
        for words, stems in retrieval["synonyms"].items():
            yield "synonyms", f"{words}: {', '.join(stems)}"
        yield "algorithm", retrieval["algorithm"]
        yield "answerable", f"{retrieval['verdict']}: {_in_digits({name: retrieval[name] for name in _PROBABILITIES})}"
        for part, error in retrieval["failures"].items():
            yield f"{part} failed", error
    for use in document["tools"]:
        what = f"{use['name']} {use['query'] or ''}".strip()
        yield "looked up", what if use["ok"] else f"{what}, in vain"
    yield "answer", f"{response['status']}, confidence {response['grounding_confidence']:.2f}"
    if response["degraded_reason"]:
        yield "degraded", response["degraded_reason"]


def _search(document: Mapping[str, Any]) -> Iterator[str]:
    retrieval = document["retrieval"]
    if entry := document["faq"]:
        yield f"\nThe FAQ entry {entry['source_file_path']}: {entry['section']}"
        yield f"answers with a probability of {entry['probability']:.2f}: {_in_digits(entry['features'])}"
        return
    if entry := document["nearest_faq"]:
        yield f"\nThe nearest FAQ entry {entry['source_file_path']}: {entry['section']}"
        too_low = entry["probability"] < entry["least"]
        why = f"less than {entry['least']:.2f}" if too_low else "but the question refers to an earlier one"
        probability = f"{entry['probability']:.2f}"
        yield f"does not answer, with a probability of {probability}, {why}: {_in_digits(entry['features'])}"
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
        parts = _in_digits({name: memory["components"][name] for name in _WEIGHTS})
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


def _in_digits(values: Mapping[str, float], form: str = ".2f") -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def _parts(candidate: Mapping[str, Any]) -> str:
    """Return what a rank is made of."""
    components = candidate["components"]
    if "rerank" in components:
        return f"rerank {components['rerank']:.2f}"
    weights = {name: components[name] for name in _WEIGHTS if name in components}
    return ", ".join(filter(None, (_in_digits(candidate["contributions"], "+.2f"), _in_digits(weights)))) or "nothing"


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
