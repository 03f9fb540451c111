"""Builds the response: the verified answer with suggestions of further questions, or a refusal.

No text of a suggestion is generated: it is the heading of a section that the search returned and the answer does not
cite, behind the title of its page if it says too little alone. It is made only if a search for it returns that section
first, with enough evidence for an answer. Sections are tried in the order of the search, then those around the cited
ones.

Measured by words on 388 questions on six sites: all of 552 suggestions beside 287 answers were answered, 549 of them
from that section first.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

from chapterverse.calibration import Calibration, Matching, WeightedQuestion
from chapterverse.errors import IndexFault
from chapterverse.filters import In
from chapterverse.model import MEMORY, Chunk, utc_now
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse_api import phrases
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.contract import AnswerStatus, ChatResponse, PartialReason, Segment, SourceChunk
from chapterverse_api.conversation.detection import detect_follow_up
from chapterverse_api.conversation.transcript import signed_question
from chapterverse_api.draft.draft import ShownDraft, make_segment
from chapterverse_api.search.passages import choose
from chapterverse_api.search.ranking import SectionKey, section
from chapterverse_api.search.results import Retrieval

#: Suggestions of one answer, and characters of each, at most.
MAX_SUGGESTIONS, MAX_SUGGESTION_CHARS = 3, 80
#: Most searches of one answer: all of them take 1.3 ms with 10,000 chunks.
_MAX_SEARCHES = 4
#: Seconds after which no other section is tried either: no reader waits for suggestions from a slow store.
MAX_SUGGESTION_SECONDS = 0.1
#: Least share of the best result's score for a section to be suggested.
_MIN_SUGGESTION_SCORE = 0.65
#: Chunks of a page on either side of a citation that may be suggested.
_MAX_CHUNK_DISTANCE = 6
#: Sections that are considered: as many as the sources that a request may ask for.
_MAX_SECTIONS = 20
#: Characters of a heading: a longer one is never suggested.
_MAX_HEADING_CHARS = 4 * MAX_SUGGESTION_CHARS
#: Size of the cache of wordings by heading, and of the cache of first results by wording, one for each generation.
_CACHE_SIZE = 4096
_FIRST_SECTIONS: WeakKeyDictionary[Snapshot, dict[tuple[str, str], SectionKey | None]] = WeakKeyDictionary()
#: Letters of a heading that may say something: a version has fewer.
_MIN_LETTERS = 3
#: The scripts of East Asia begin here in Unicode; two of their letters are a word.
_UNSPACED, _UNSPACED_LETTER = "\u2e80", 2

# Code and emphasis, where they begin and end a word: not the asterisk of "no-unsafe-*".
_MARKS = re.compile(r"(?<![\w*`~])(`+|\*{1,3}|~~)(?=\S)([^`*~]++)(?<=\S)\1(?![\w*`~])")
#: Joiners inside words of Persian and Indic languages, and inside emoji.
_JOINERS = "\u200c\u200d"
_WORD = re.compile(r"[^\W\d_]+")
#: A numbered step is never suggested: the steps before it have to be done first.
_STEP = re.compile(r"(?:step\s*+)?\d++\s*+[.:)]", re.IGNORECASE)

#: As their words in lower case.
_GENERIC_HEADINGS = frozenset(
    heading for tag in phrases.PHRASE_LANGUAGES for heading in phrases.for_language(tag).generic.split("; ")
)


def respond(draft: ShownDraft, turn: Turn) -> ChatResponse:
    """Return the response with the segments that were shown, or a refusal if there are none."""
    turn.draft, degraded = draft, turn.explain_degradation(draft.failure)
    turn.log("response_generated", generator=draft.generator, dropped_citations=draft.dropped)
    return make_answer(turn, draft, degraded) if draft.spans else make_refusal(turn, degraded)


def make_answer(
    turn: Turn,
    draft: ShownDraft,
    degraded: str | None,
    *,
    data: dict[str, Any] | None = None,
    data_citations: dict[str, Any] | None = None,
) -> ChatResponse:
    """Return the response that the shown segments make.

    Args:
        data: the values that fill the schema of the request.
        data_citations: the data with the ids of sources as values.
    """
    sources, cited, quoted = turn.sources, draft.citations, draft.quoted
    urls = {source.id: source.url for source in sources.shown}
    reason: PartialReason | None = "language" if sources.other_language else draft.partial_reason
    # A model has judged the weak passages that it answers from; quotes have not.
    reason = None if draft.not_in_docs else "may_help" if quoted and sources.request.may_help else reason
    status: AnswerStatus = "partial" if reason else "answered"
    status = "not_in_docs" if draft.not_in_docs else "degraded" if degraded else status
    # The search says how likely quotes answer, the check how likely the sources say a model's words.
    confidence = sources.retrieval.confidence if sources.retrieval and quoted else None

    def place(source: SourceChunk) -> int:
        """Return the place behind the cited sources; quotes set the order of these."""
        return (cited.index(source.id) if quoted else 0) if source.id in cited else len(cited)

    names_places = sources.mode == "selected_text" or status in ("partial", "not_in_docs")
    return make_response(
        turn,
        list(map(make_segment, draft.spans)),
        source_chunks=sorted(sources.shown, key=place),
        status=status,
        partial_reason=reason,
        grounding_confidence=round(draft.confidence if confidence is None else confidence, 4),
        sources_cited=list(dict.fromkeys(url for i in cited if (url := urls[i]))),
        follow_ups=[] if draft.not_in_docs else suggest(turn, cited),
        nearest=list(sources.nearest) if names_places else [],
        degraded_reason=degraded,
        data=data,
        data_citations=data_citations,
    )


def make_refusal(turn: Turn, degraded: str | None) -> ChatResponse:
    """Return the refusal, with the nearest pages."""
    sources, limited = turn.sources, bool(turn.query.filters)
    # What has a page near it is on the subject, and so may be what a part of the docs is silent about.
    on_subject = sources.retrieval_used and (limited or sources.nearest)
    purpose = phrases.for_language(sources.language).purpose
    text = purpose if sources.off_topic and not on_subject else phrases.refusal(sources.language, limited=limited)
    return make_response(
        turn,
        [Segment(text=text, kind="framing")],
        source_chunks=[],
        status="not_in_docs",
        grounding_confidence=0.0,
        sources_cited=[],
        nearest=list(sources.nearest),
        degraded_reason=degraded,
    )


def make_response(turn: Turn, segments: list[Segment], **fields: Any) -> ChatResponse:
    """Return the response with what does not depend on its status, and its signature."""
    text, sources = "".join(segment.text for segment in segments), turn.sources
    signer, previous = turn.resources.signer, turn.conversation.previous
    return ChatResponse(
        response=text,
        segments=segments,
        mode=sources.mode,
        retrieval_used=sources.retrieval_used,
        searched_as=sources.searched_as,
        turn_id=turn.id,
        thread_id=turn.thread_id,
        timestamp=utc_now("milliseconds"),
        execution_time=turn.seconds,
        signature=signer.sign(turn.id, previous, signed_question(turn.query), text),
        **fields,
    )


def suggest(turn: Turn, cited: Collection[str]) -> list[str]:
    """Return further questions, best first; none beside a selection, or if the turn has used up its time.

    Args:
        cited: ids of the passages that the answer cites.
    """
    retrieval, snapshot = turn.sources.retrieval, turn.sources.snapshot
    # An answer from a tool alone has no search results.
    if retrieval is None or not retrieval.candidates or snapshot is None or turn.query.selected_text:
        return []
    languages = snapshot.head.languages
    asked = [_terms(text, languages) for text in (*turn.conversation.questions, turn.query.query or "")]
    suggestions, searches, started = list[str](), 0, time.perf_counter()
    # The answer is complete, and its generation may have been deleted by now.
    with suppress(IndexFault):
        for chunk in _find_uncited(turn.sources, retrieval, cited):
            is_late = time.perf_counter() - started > MAX_SUGGESTION_SECONDS or not turn.deadline.seconds_left
            if len(suggestions) == MAX_SUGGESTIONS or searches == _MAX_SEARCHES or is_late:
                break
            heading = chunk.heading_path[-1] if chunk.heading_path else ""
            text, terms = _make_wording(heading, chunk.chapter_title, languages)
            # A suggestion without a word beyond the question's repeats the question.
            if not text or terms <= asked[-1] or terms in asked:
                continue
            asked.insert(0, terms)
            searches += 1
            if finds_first(turn, text, chunk):
                suggestions.append(text)
    return suggestions


def finds_first(turn: Turn, text: str, chunk: Chunk) -> bool:
    """Whether a search for a text finds the section of a chunk first. Raises `IndexFault`."""
    retrieval, snapshot = turn.sources.retrieval, turn.sources.snapshot
    if retrieval is None or snapshot is None:
        return False
    language = chunk.language if len(snapshot.head.languages) > 1 else ""
    return _search_first(text, language, snapshot, retrieval.calibration) == section(chunk)


def plain_heading(heading: str) -> str:
    """Return a heading as plain text on one line: without Markdown, and without what shows as nothing."""
    text = _MARKS.sub(r"\2", plain(" ".join(heading[:_MAX_HEADING_CHARS].split())))
    return "".join(c for c in text if c.isprintable() or c in _JOINERS)


def is_descriptive(heading: str) -> bool:
    """Whether a heading describes its section: more than "Overview" or "1.2.0", and no address."""
    words = _WORD.findall(heading.lower())
    letters = sum(_UNSPACED_LETTER if c >= _UNSPACED else 1 for word in words for c in word)
    return (
        letters >= _MIN_LETTERS
        and " ".join(words) not in _GENERIC_HEADINGS
        and "://" not in heading
        and not _STEP.match(heading)
    )


def _find_uncited(sources: Sources, retrieval: Retrieval, cited: Collection[str]) -> Iterator[Chunk]:
    """Yield a chunk of each section that may be suggested: first search results, then neighbors of the citations."""
    cited_chunks = {p.chunk_id for p in sources.request.passages if p.id in cited}
    related = retrieval.candidates[0].score * _MIN_SUGGESTION_SCORE
    strong = [
        c.chunk
        for c in choose(retrieval.strong, _MAX_SECTIONS)
        if c.score >= related or c.chunk.chunk_id in cited_chunks
    ]
    quoted = [chunk for chunk in strong if chunk.chunk_id in cited_chunks]
    around = chain.from_iterable(_find_near(chunk, sources.pages[chunk.source_file_path]) for chunk in quoted)
    sections = set(map(section, quoted))
    for chunk in chain(strong, around):
        if chunk.type != MEMORY and section(chunk) not in sections:
            sections.add(section(chunk))
            yield chunk


def _find_near(chunk: Chunk, page: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks near a chunk on its page, nearest first and those behind it before those above."""
    offsets = ((c.chunk_index - chunk.chunk_index, c) for c in page)
    neighbors = [(abs(offset), offset < 0, c) for offset, c in offsets if 0 < abs(offset) <= _MAX_CHUNK_DISTANCE]
    return [c for _, _, c in sorted(neighbors, key=lambda ranked: ranked[:2])]


def _search_first(text: str, language: str, snapshot: Snapshot, calibration: Calibration) -> SectionKey | None:
    """Return the section that a search finds first, if it is evidence enough.

    It is cached with the generation. The keys of the cache are headings, never readers' words.
    """
    firsts = _FIRST_SECTIONS.setdefault(snapshot, {})
    if (text, language) in firsts:
        return firsts[text, language]
    if len(firsts) >= _CACHE_SIZE:
        # The full one stays as it is, because other threads may be reading it.
        _FIRST_SECTIONS[snapshot] = firsts = {}
    language_filter = In("language", (language,)) if language else None
    hits = snapshot.search_lexical(lexical.query_vector(text, snapshot.head.languages), 1, language_filter)
    firsts[text, language] = first = next((section(h.chunk) for h in hits if _answers(text, h, calibration)), None)
    return first


def _answers(text: str, hit: Hit, calibration: Calibration) -> bool:
    """Whether a hit has enough evidence, by words alone. All words weigh the same, which saves an index look-up."""
    words = tuple(dict.fromkeys((word.terms,) for word in lexical.words(text, hit.chunk.language)))
    weights = dict.fromkeys((t for (terms,) in words for t in terms), 1.0)
    title = float(plain_heading(hit.chunk.chapter_title) in text)
    matching = Matching(WeightedQuestion(words, (1.0,) * len(words)), weights)
    return calibration.of(matching.features(hit.lexical.among(weights), title=title)) >= calibration.floor


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _make_wording(heading: str, title: str, languages: tuple[str, ...]) -> tuple[str, frozenset[int]]:
    """Return the suggestion of a section, and its terms; empty if its heading says nothing."""
    heading, title = plain_heading(heading), plain_heading(title)
    if not is_descriptive(heading):
        return "", frozenset()
    is_self_contained = len(heading) <= MAX_SUGGESTION_CHARS and detect_follow_up(heading, languages) == "no"
    text = heading if is_self_contained or heading == title else f"{title} › {heading}"
    return (text, _terms(text, languages)) if len(text) <= MAX_SUGGESTION_CHARS else ("", frozenset())


def _terms(text: str, languages: tuple[str, ...]) -> frozenset[int]:
    return lexical.terms_of(lexical.question_words(text, languages))
