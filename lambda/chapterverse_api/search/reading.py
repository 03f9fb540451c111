"""Lets the reading model read the first candidates of a search, and order them anew.

A candidate's value is linear in three figures: the logarithm of its rank, the cosine of its vector and the question's,
and the model's relevance. Each is better than the others on some site, so none is left out. A softmax over the values
says how likely each candidate is the best. How likely the best section is tells good answers from wrong ones, together
with the relevance of its first candidate and what the words say.
`benchmarks/reading_model.py --train` fits the weights in `reading.json`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chapterverse.calibration import logistic
from chapterverse.reading import Reading, ReadingModel
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.quoting.blocks import read_blocks
from chapterverse_api.draft.requests import PassageReading
from chapterverse_api.search.ranking import Candidate, section_key
from chapterverse_api.search.results import Retrieval, load_weights, logit

#: Candidates that are read. Twelve put .644 and .757 of the right sections first, on two sets of sites; eight .644 and
#: .750, in two thirds of the time (`benchmarks/reading_model.py`).
MAX_READ = 8
#: Seconds that reading may take, waiting for other questions included. If it would take more, nothing is read.
MAX_READING_SECONDS = 3.0
#: The model was trained on this language alone.
_LANGUAGE = "en"
#: Words of other scripts are no words to the model.
_MIN_ASCII_SHARE = 0.5


def read_candidates(retrieval: Retrieval, question: str, model: ReadingModel, deadline: Deadline) -> Retrieval:
    """Return the results with the first candidates read, and in a better order unless another model ordered them.

    Without time, or a question in the model's language, they are returned as they are.

    Raises:
        ClientDisconnected: the reader left while others were read.
    """
    first = retrieval.candidates[:MAX_READ]
    if not first or not _reads(question, first):
        return retrieval
    step, parts = deadline.step(MAX_READING_SECONDS), [passage_parts(candidate) for candidate in first]
    passages = [(candidate.chunk.heading_path, own) for candidate, own in zip(first, parts, strict=True)]
    readings = model.read_question(question, passages, lambda: step.seconds_left)
    if readings is None:
        # A reader who left took nobody's time.
        deadline.check()
        model.queue.count_late()
    if not readings:
        return retrieval
    weights = load_weights("reading.json")
    values = [
        weights["rank"] * math.log(rank) + weights["cosine"] * cosine + weights["relevance"] * reading.relevance
        for rank, (reading, cosine) in enumerate(readings, 1)
    ]
    odds = [math.exp(value - max(values)) for value in values]
    shares = [odd / sum(odds) for odd in odds]
    read = [
        candidate._replace(
            reading=PassageReading(share, _log_probabilities(own, reading)),
            components={**candidate.components, "reading": reading.relevance, "cosine": cosine},
        )
        for candidate, own, share, (reading, cosine) in zip(first, parts, shares, readings, strict=True)
    ]
    is_reranked = "rerank" in first[0].components
    order = range(len(read)) if is_reranked else sorted(range(len(read)), key=lambda i: (-values[i], i))
    # The scores stay where they were: they say how near a place is to the first one.
    ordered = [read[i]._replace(score=before.score) for i, before in zip(order, first, strict=True)]
    best = read[order[0]]
    of_section = (c.reading.best for c in read if c.reading and section_key(c.chunk) == section_key(best.chunk))
    return replace(
        retrieval,
        candidates=(*ordered, *retrieval.candidates[MAX_READ:]),
        algorithm=f"{retrieval.algorithm} + reading",
        confidence=confidence(readings[order[0]][0].relevance, sum(of_section), retrieval.answerability.first),
    )


def confidence(relevance: float, share: float, answerability: float) -> float:
    """Return the probability that quotes of the first candidate answer well.

    Args:
        relevance: the model's, of the first candidate.
        share: the probability that its section holds the best candidate.
        answerability: the probability that its page answers, by the words of the search.
    """
    weights = load_weights("reading.json")
    return logistic(
        weights["bias"]
        + weights["first_relevance"] * relevance
        + weights["share"] * logit(share)
        + weights["answerability"] * logit(answerability)
    )


def passage_parts(candidate: Candidate) -> list[str]:
    """Return the parts of a candidate's text that may be marked: code as a whole, no labels."""
    text, parts = plain(candidate.chunk.text), list[str]()
    for block in read_blocks(text):
        if block.kind == "code":
            parts.append(text[block.start : block.end])
        elif not block.label:
            parts += (text[part.start : part.end] for part in block.parts)
    return parts


def _log_probabilities(parts: Sequence[str], reading: Reading) -> dict[str, float]:
    """Return the log-probability of each part that was read."""
    if not reading.parts:
        return {}
    highest = max(reading.parts.values())
    total = highest + math.log(sum(math.exp(value - highest) for value in reading.parts.values()))
    return {parts[place].strip(): value - total for place, value in reading.parts.items()}


def _reads(question: str, candidates: Sequence[Candidate]) -> bool:
    """Whether the model can read a question and what it found.

    Pages whose site states no language are taken for English, so their words are asked too.
    """
    tags = {lexical.primary_subtag(candidate.chunk.language) for candidate in candidates}
    texts = question, "\n".join(candidate.chunk.text for candidate in candidates)
    return tags == {_LANGUAGE} and all(map(_is_readable, texts))


def _is_readable(text: str) -> bool:
    """Whether a text is English, or too short to tell."""
    letters = [c for c in text if c.isalpha()]
    is_latin = sum(map(str.isascii, letters)) >= _MIN_ASCII_SHARE * len(letters)
    return is_latin and lexical.prose_language(text, lexical.LANGUAGES) in (None, _LANGUAGE)
