"""Searches for every question, on request answers it, and tests the check of citations.

The test makes supported sentences of the answers false, and counts how many the check catches. A fixed seed selects the
sentences and their changes:

    foreign   a sentence of another page under this citation
    number    one of the sentence's numbers changed
    negation  a "not" added or removed; skipped for sentences with another negation, because two may cancel out
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urldefrag

from chapterverse.errors import IndexLocked, InputError, ProviderError
from chapterverse.model import Chunk, Head, utc_now
from chapterverse.progress import Progress, track
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api.ext.evaluation.metrics import CAUGHT, DEPTH, AnswerResult, CitationCounts, MutationCounts
from chapterverse_api.ext.evaluation.places import (
    SitePlaces,
    distinct,
    match_place,
    pages,
    place_without_page,
    ranks,
)
from chapterverse_api.ext.evaluation.questions import QuestionRow
from chapterverse_api.ext.evaluation.quoting import bare
from chapterverse_api.ext.evaluation.runs import IndexInfo, QuestionResult, Result, Run
from chapterverse_api.ext.evaluation.session import CitedClaim, EvaluationSession, Examination, JudgedAnswer

#: Results per question. Figures look at the first ten; the rest separates "too late" from "not found".
_TOP_K = 20
#: Most claims that are mutated; more would change a share by less than a hundredth.
_MAX_CLAIMS = 400
_SEED = 0

# Neither an item's number nor a part of a larger number.
_NUMBER = re.compile(r"(?!\A\d+[.)]\s)(?<![\w.,:/-])\d{1,9}(?![\w/:-]|[.,]\d)")
_NOT = re.compile(r"\b(?:not|nicht)\s+|\b(can)(?:not|['’]t)\b|(?<!wo)n['’]t\b", re.IGNORECASE)
_OTHERWISE = re.compile(
    r"\A\||\b(?:no|none|never|neither|nor|nothing|nobody|without|only|unless|kein\w*|nie|niemals|weder|nichts|ohne|nur)\b",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"\b(?P<en>is|are|was|were|can|will|must|should|may|does|do|has|have)\b|"
    r"\b(?P<de>ist|sind|war|waren|kann|können|wird|werden|muss|müssen|darf|dürfen)\b",
    re.IGNORECASE,
)


def search_questions(
    questions: Sequence[QuestionRow], session: EvaluationSession, settings: Settings, report: Progress
) -> Run:
    """Search for every question, one after the other.

    Raises:
        InputError: a question is invalid; the message names its row.
        ProviderError: a part of the system failed, so the figures would be those of another system.
        IndexLocked: another generation was published meanwhile.
        IndexFault: there is no readable index.
    """
    snapshot: Snapshot = session.snapshot()
    head = snapshot.head
    chunks = [point.chunk for point in snapshot.points()]
    site = SitePlaces((head.base_url, settings.base_url), chunks)
    questions = [_place(question, chunks) for question in questions]
    rows, floor = [], 0.0
    for question in track(report, "Asking questions", questions):
        search = _search_one(question, session, head)
        rows.append(_row(question, search, site))
        floor = search.retrieval.calibration.floor
    missing = [(question.place, a) for question, row in zip(questions, rows, strict=True) for a in row.missing]
    warnings = tuple(_warning(place, address, site) for place, address in missing)
    return Run(_index(head, settings), floor, utc_now(), tuple(rows), warnings)


def _place(question: QuestionRow, chunks: Sequence[Chunk]) -> QuestionRow:
    """Return the question with the addresses of the file that it names; the root of the index may lie deeper."""
    if question.expected or not question.answerable:
        return question
    file_chunks = [c for c in chunks if f"/{question.file}".endswith(f"/{c.source_file_path}")]
    if not file_chunks:
        raise InputError(f"{question.place}: the index holds no page of the file {question.file!r}.")
    urls = [c.url for c in file_chunks if question.heading and bare(c.section_heading or "") == bare(question.heading)]
    return replace(question, expected=tuple(dict.fromkeys(urls or [urldefrag(file_chunks[0].url).url])))


def _search_one(question: QuestionRow, session: EvaluationSession, head: Head) -> Examination:
    with question.named():
        search = session.examine(question.question, question.history, _TOP_K)
    if reason := search.retrieval.degraded:
        raise ProviderError(
            f"{question.place}: there are no figures, because they would be of another system: {reason}", retryable=True
        )
    if search.head.generation != head.generation:
        raise IndexLocked(f"The index of {head.scope} was published anew while it was examined: run it again.")
    return search


def _row(question: QuestionRow, search: Examination, site: SitePlaces) -> QuestionResult:
    expected = {address: site.place(address) for address in question.expected}
    targets = distinct(expected.values())
    hits = [
        (hit, site.place(hit["url"] or place_without_page(hit["source_file_path"], hit["section"])))
        for hit in search.rows
    ]
    places = [place for _, place in hits]
    return QuestionResult(
        id=question.id,
        question=question.question,
        answerable=question.answerable,
        expected=question.expected,
        missing=tuple(address for address, place in expected.items() if not site.holds(place)),
        chapter=next((title for place in targets if (title := site.chapter(place)) is not None), None),
        anchor_ranks=ranks(targets, places),
        page_ranks=ranks(pages(targets), places),
        evidence=round(search.retrieval.evidence, 4),
        refused=not search.retrieval.sure,
        seconds=search.seconds,
        results=tuple(
            Result(hit["rank"], hit["score"], hit["url"], hit["chapter"], hit["section"], match_place(targets, place))
            for hit, place in hits[:DEPTH]
        ),
    )


def _warning(row: str, address: str, site: SitePlaces) -> str:
    place = site.place(address)
    if site.holds(place.whole_page):
        return f"{row}: {address} counts as missed, for the index holds its page and no such section."
    return f"{row}: {address} counts as missed, for the index holds no such page."


def _index(head: Head, settings: Settings) -> IndexInfo:
    return IndexInfo(
        site=head.site,
        version=head.version,
        generation=head.generation,
        pages=head.pages,
        chunks=head.chunks,
        embedder=head.embedder.name,
        reranker=settings.reranker,
        base_url=head.base_url,
        published_at=head.published_at,
    )


def answer_questions(
    run: Run, questions: Sequence[QuestionRow], session: EvaluationSession, settings: Settings, report: Progress
) -> Run:
    """Have the service answer every question of a run, and return the run with the answers.

    An interrupt stops the questions and keeps the answers so far.

    Args:
        questions: the questions of the run's rows, in the same order.

    Raises:
        IndexLocked: another generation was published meanwhile.
        IndexFault: there is no readable index.
    """
    site = SitePlaces((run.index.base_url, settings.base_url))
    answers, claims, interrupted = list[AnswerResult | None](), list[CitedClaim](), False
    try:
        for done, question in enumerate(track(report, "Answering questions", questions)):
            judged = session.judge_answer(question.question, question.history)
            if judged.generation != run.index.generation:
                raise IndexLocked(
                    f"The index of {run.index.site} was published anew while its questions were answered: run it again."
                )
            answers.append(_answer(question, run.rows[done].expected, judged, site))
            claims += judged.claims if not judged.result.degraded else ()
        mutation_counts = _test_check(claims, session, report)
    except KeyboardInterrupt:
        mutation_counts, interrupted = {}, True
    answers += [None] * (len(questions) - len(answers))
    rows = tuple(replace(row, answer=result) for row, result in zip(run.rows, answers, strict=True))
    return replace(run, rows=rows, generator=settings.generator, caught=mutation_counts, interrupted=interrupted)


def _answer(question: QuestionRow, addresses: Sequence[str], judged: JudgedAnswer, site: SitePlaces) -> AnswerResult:
    """Return the result of an answer, with what the question's row tells."""
    expected = distinct(site.place(address) for address in addresses)
    contained = sum(n.stands_in(judged.result.text) for n in question.nuggets)
    return replace(
        judged.result,
        cited=tuple(CitationCounts(url, match_place(expected, site.place(url))) for url in judged.cited),
        nuggets=len(question.nuggets),
        contained=0 if judged.result.refused else contained,
        key=question.key.figures([] if judged.result.refused else judged.segments) if question.key else {},
    )


def _test_check(
    claims: Sequence[CitedClaim], session: EvaluationSession, report: Progress
) -> dict[str, MutationCounts]:
    """Return by kind how many false sentences were checked, and how many the check rejected."""
    mutated = list(mutations(claims))
    tried, caught = Counter(kind for kind, _ in mutated), Counter[str]()
    held = session.holds([claim for _, claim in mutated])
    for (kind, _), holds in zip(track(report, "Testing the verifier", mutated), held, strict=True):
        caught[kind] += not holds
    return {kind: MutationCounts(tried[kind], caught[kind]) for kind in CAUGHT if tried[kind]}


def mutations(claims: Sequence[CitedClaim]) -> Iterator[tuple[str, CitedClaim]]:
    """Yield (kind, false claim). A claim without a number, or without a verb to negate, has no such mutation."""
    chance = random.Random(_SEED)  # noqa: S311  (a sample, not a secret)
    for claim in claims if len(claims) <= _MAX_CLAIMS else chance.sample(list(claims), _MAX_CLAIMS):
        texts = {
            "foreign": _foreign(claim, claims, chance),
            "number": _renumber(claim["text"], chance),
            "negation": negate(claim["text"]),
        }
        for kind, text in texts.items():
            if text is not None:
                mutation: CitedClaim = {**claim, "text": text}
                yield kind, mutation


def _foreign(claim: CitedClaim, claims: Sequence[CitedClaim], chance: random.Random) -> str | None:
    """Return a sentence of another page that this page doesn't hold."""
    own_texts = {other["text"] for other in claims if _page(other) == _page(claim)}
    texts = [other["text"] for other in claims if other["text"] not in own_texts]
    return chance.choice(texts) if texts else None


def _renumber(text: str, chance: random.Random) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    match = chance.choice(numbers)
    return f"{text[: match.start()]}{int(match.group()) + chance.randrange(1, 90)}{text[match.end() :]}"


def negate(text: str) -> str | None:
    """Return the sentence with the opposite meaning; None for a table row and where a "not" is not enough."""
    negations, verb = list(_NOT.finditer(text)), _AUXILIARY.search(text)
    if _OTHERWISE.search(text) or len(negations) > 1:
        return None
    if negations:
        return f"{text[: negations[0].start()]}{negations[0].group(1) or ''}{text[negations[0].end() :]}"
    if verb is None:
        return None
    return f"{text[: verb.end()]} {'not' if verb['en'] else 'nicht'}{text[verb.end() :]}"


def _page(claim: CitedClaim) -> str:
    return claim["url"].partition("#")[0]
