"""Names sections that a reader may mean or ask about next, each by a text with which a search finds it first.

Choices: a question may fit sections equally well: "supported clusters" stands below each of three clouds. Their
headings hold every word of the question, and the nearest one says no more than the question or than that of the others.
So nothing that the reader wrote tells them apart, and they say different things: the reader may choose. A page of that
title is no such section, because it is the subject itself. They are never offered twice in a row, so whoever asks the
same again gets an answer. Of 1,140 questions that a language model wrote as readers of thirteen sites, none is asked
back; of 172 headings that stand on several pages of seventeen sites, asked as they are, 28.

Suggestions: each is the heading of a section that the search returned and the answer does not cite, behind the title of
its page if it says too little alone. Sections are tried in the order of the search, then those around the cited ones.
Measured by words on 388 questions on six sites: all of 552 suggestions beside 287 answers were answered, 549 of them
from that section first.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from weakref import WeakKeyDictionary

from chapterverse.calibration import Calibration, Matching, WeightedQuestion, match_word
from chapterverse.errors import IndexFault
from chapterverse.filters import In
from chapterverse.model import MEMORY, Chunk
from chapterverse.store import Hit, Snapshot
from chapterverse.text import lexical
from chapterverse.text.markdown import plain
from chapterverse_api import phrases
from chapterverse_api.conversation.detection import detect_follow_up
from chapterverse_api.conversation.transcript import REPORTED, Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.search.passages import FoundSources, choose
from chapterverse_api.search.ranking import Candidate, SectionKey, section_key
from chapterverse_api.search.results import Retrieval

#: Sections that are offered. A heading that stands more often is a form that many pages share.
_MAX_CHOICES = 3
#: Candidates that are compared.
_MAX_CANDIDATES = 8
#: The least evidence of each, and its score over that of the first; if both were read, its probability over that.
_MIN_EVIDENCE, _MIN_SCORE_SHARE, _MIN_READING_SHARE = 0.8, 0.9, 0.5
#: From this share of common terms on, two sections say the same.
_SAME_TEXT = 0.5

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

_ASKED_BACK = frozenset(phrases.for_language(tag).choice for tag in phrases.PHRASE_LANGUAGES)
#: How a section is named: by its page, by the section above it, or by all of its headings.
_WORDINGS: tuple[Callable[[Chunk], Sequence[str]], ...] = (
    lambda chunk: (chunk.chapter_title, *chunk.heading_path[-1:]),
    lambda chunk: chunk.heading_path[-2:],
    lambda chunk: chunk.heading_path,
)


def name_choices(question: str, retrieval: Retrieval, conversation: Conversation, snapshot: Snapshot) -> list[str]:
    """Return a text for each of the sections that a question fits equally well; none if one fits best."""
    messages = conversation.messages
    if messages and messages[-1].content.removeprefix(REPORTED) in _ASKED_BACK:
        return []
    texts = list[str]()
    # The generation may have been deleted by now.
    with suppress(IndexFault):
        texts = _name(_find_choices(retrieval), snapshot, retrieval.calibration)
    # Who writes such a text means the section that it names.
    return [] if question.strip() in texts else texts


def _name(chunks: Sequence[Chunk], snapshot: Snapshot, calibration: Calibration) -> list[str]:
    """Return a text for each section, all of one wording; none if no wording tells them apart."""
    for wording in _WORDINGS:
        texts = [" › ".join(plain_heading(heading) for heading in wording(chunk)) for chunk in chunks]
        if len({*texts}) == len(texts) > 1 and max(map(len, texts)) <= MAX_SUGGESTION_CHARS:
            pairs = zip(texts, chunks, strict=True)
            return texts if all(_finds_first(text, chunk, snapshot, calibration) for text, chunk in pairs) else []
    return []


def _find_choices(retrieval: Retrieval) -> list[Chunk]:
    """Return a chunk of each section that the question fits, best first; none if one fits best, or too many do."""
    if not (retrieval.candidates and retrieval.sure and retrieval.question.has_words) or retrieval.compares:
        return []
    # A question for a definition has one answer: the section that says what it is.
    if retrieval.subject != retrieval.searched:
        return []
    first = retrieval.candidates[0]
    fitting = dict[object, Chunk]()
    for candidate in retrieval.candidates[:_MAX_CANDIDATES]:
        if _is_near(candidate, first) and _is_headed_by(retrieval.question, candidate.chunk, first.chunk):
            fitting.setdefault(section_key(candidate.chunk), candidate.chunk)
    found = [*fitting.values()]
    if not found or found[0] is not first.chunk or any(_holds(a, b) for a in found for b in found if a is not b):
        return []
    choices = _drop_same_text(found)
    return choices if 1 < len(choices) <= _MAX_CHOICES else []


def _is_near(candidate: Candidate, first: Candidate) -> bool:
    """Whether a candidate is as sure as the first one."""
    if candidate.evidence < _MIN_EVIDENCE:
        return False
    if candidate.reading and first.reading:
        return candidate.reading.best >= _MIN_READING_SHARE * first.reading.best
    return candidate.score >= _MIN_SCORE_SHARE * first.score


def _is_headed_by(question: WeightedQuestion, chunk: Chunk, first: Chunk) -> bool:
    """Whether the headings of a chunk hold each word of the question, and the nearest one tells it from no other.

    It is that of the first chunk, or neither says more than the question.
    """
    terms = _terms(" ".join(chunk.heading_path), chunk.language)
    if chunk.language != first.language or any(match_word(word, terms) < 1 for word in question.words):
        return False
    asked = {term for word in question.words for term in chain.from_iterable(word)}
    nearest, others = (_terms(" ".join(one.heading_path[-1:]), one.language) for one in (chunk, first))
    return nearest == others or nearest | others <= asked


def _holds(chunk: Chunk, other: Chunk) -> bool:
    """Whether a chunk is the beginning of a page, which is the subject itself, or its section holds the other one."""
    path = chunk.heading_path
    return len(path) < 2 or (
        chunk.source_file_path == other.source_file_path and other.heading_path[: len(path)] == path
    )


def _drop_same_text(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without those that say what an earlier one says."""
    kept: list[tuple[Chunk, frozenset[int]]] = []
    for chunk in chunks:
        terms = _terms(chunk.text, chunk.language)
        if all(len(terms & others) < _SAME_TEXT * len(terms | others) for _, others in kept):
            kept.append((chunk, terms))
    return [chunk for chunk, _ in kept]


def _terms(text: str, language: str) -> frozenset[int]:
    return lexical.terms_of(lexical.words(text, language))


def suggest(
    sources: FoundSources, cited_chunks: Collection[str | None], asked: Sequence[str], deadline: Deadline
) -> list[str]:
    """Return further questions, best first; none if the turn has used up its time.

    Args:
        cited_chunks: ids of the chunks that the answer cites.
        asked: the questions of the conversation, the last one being this answer's.
    """
    retrieval, snapshot = sources.retrieval, sources.snapshot
    # An answer from a tool alone has no search results.
    if retrieval is None or not retrieval.candidates or snapshot is None:
        return []
    languages = snapshot.head.languages
    known = [_question_terms(text, languages) for text in asked]
    suggestions, searches, started = list[str](), 0, time.perf_counter()
    # The answer is complete, and its generation may have been deleted by now.
    with suppress(IndexFault):
        for chunk in _find_uncited(retrieval, sources.pages, cited_chunks):
            is_late = time.perf_counter() - started > MAX_SUGGESTION_SECONDS or not deadline.seconds_left
            if len(suggestions) == MAX_SUGGESTIONS or searches == _MAX_SEARCHES or is_late:
                break
            heading = chunk.heading_path[-1] if chunk.heading_path else ""
            text, terms = _make_wording(heading, chunk.chapter_title, languages)
            # A suggestion without a word beyond the question's repeats the question.
            if not text or terms <= known[-1] or terms in known:
                continue
            known.insert(0, terms)
            searches += 1
            if _finds_first(text, chunk, snapshot, retrieval.calibration):
                suggestions.append(text)
    return suggestions


def _finds_first(text: str, chunk: Chunk, snapshot: Snapshot, calibration: Calibration) -> bool:
    """Whether a search for a text finds the section of a chunk first. Raises `IndexFault`."""
    language = chunk.language if len(snapshot.head.languages) > 1 else ""
    return _search_first(text, language, snapshot, calibration) == section_key(chunk)


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


def _find_uncited(
    retrieval: Retrieval, pages: Mapping[str, Sequence[Chunk]], cited_chunks: Collection[str | None]
) -> Iterator[Chunk]:
    """Yield a chunk of each section that may be suggested: first search results, then neighbors of the citations."""
    related = retrieval.candidates[0].score * _MIN_SUGGESTION_SCORE
    strong = [
        c.chunk
        for c in choose(retrieval.strong, _MAX_SECTIONS)
        if c.score >= related or c.chunk.chunk_id in cited_chunks
    ]
    quoted = [chunk for chunk in strong if chunk.chunk_id in cited_chunks]
    around = chain.from_iterable(_find_near(chunk, pages[chunk.source_file_path]) for chunk in quoted)
    sections = set(map(section_key, quoted))
    for chunk in chain(strong, around):
        if chunk.type != MEMORY and section_key(chunk) not in sections:
            sections.add(section_key(chunk))
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
    firsts[text, language] = first = next((section_key(h.chunk) for h in hits if _answers(text, h, calibration)), None)
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
    return (text, _question_terms(text, languages)) if len(text) <= MAX_SUGGESTION_CHARS else ("", frozenset())


def _question_terms(text: str, languages: tuple[str, ...]) -> frozenset[int]:
    return lexical.terms_of(lexical.question_words(text, languages))
