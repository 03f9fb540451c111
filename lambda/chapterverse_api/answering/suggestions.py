"""Suggests further questions: the headings of sections that the search returned and the answer does not cite.

No text is generated. A suggestion is a heading, behind the title of its page if it says too little alone. It is made
only if a search for it returns that section first, with enough evidence for an answer. Sections are tried in the order
of the search, then those around the cited ones.

Measured by words on 388 questions on six sites: all of 552 suggestions beside 287 answers were answered, 549 of them
from that section first.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from chapterverse.calibration import Matching, WeightedQuestion
from chapterverse.errors import IndexFault
from chapterverse.filters import In
from chapterverse.model import MEMORY, Chunk
from chapterverse.text import lexical
from chapterverse.text.plain import plain
from chapterverse_api.conversation.follow_up_detection import detect_follow_up
from chapterverse_api.retrieval.passages import choose
from chapterverse_api.retrieval.ranking import SectionKey, section

if TYPE_CHECKING:
    from chapterverse.calibration import Calibration
    from chapterverse.store import Hit, Snapshot
    from chapterverse_api.answering.context import AnswerContext
    from chapterverse_api.answering.turn import Turn
    from chapterverse_api.retrieval.results import Retrieval

#: Suggestions of one answer, and characters of each, at most.
MAX_SUGGESTIONS, MAX_SUGGESTION_CHARS = 3, 80
#: Most searches of one answer: all of them take 1.3 ms with 10,000 chunks.
MAX_SEARCHES = 4
#: Seconds after which no other section is tried either: no reader waits for suggestions from a slow store.
MAX_SECONDS = 0.1
#: Least share of the best result's score for a section to be suggested.
MIN_RELATIVE_SCORE = 0.65
#: Chunks of a page on either side of a citation that may be suggested.
MAX_CHUNK_DISTANCE = 6
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

#: Headings that say nothing about their sections, as their words in lower case.
_GENERIC_LIST = """
    about|added|appendix|background|basics|before you begin|before you start|bug fixes|changed|changelog|changes
    conclusion|contents|deprecated|description|details|example|examples|faq|fixed|further reading|general|getting help
    getting started|goals|index|intro|introduction|learn more|links|miscellaneous|more|more information|motivation
    next steps|note|notes|other|others|outline|overview|parameters|prerequisites|quick start|quickstart|read more
    reference|references|related|related topics|release notes|removed|requirements|resources|returns|see also|step
    summary|table of contents|tips|tl dr|todo|usage|welcome|what s new|what s next|what next
    allgemeines|beispiel|beispiele|einführung|einleitung|fazit|hinweise|inhalt|nächste schritte|siehe auch
    voraussetzungen|zusammenfassung|überblick|übersicht
    aperçu|exemple|exemples|généralités|présentation|prérequis|résumé|voir aussi
    ejemplo|ejemplos|introducción|notas|próximos pasos|requisitos|resumen|véase también|visión general
    esempi|esempio|introduzione|panoramica|prerequisiti|prossimi passi|riepilogo|vedi anche
    exemplo|exemplos|introdução|próximos passos|resumo|veja também|visão geral
    inleiding|overzicht|samenvatting|vereisten|voorbeeld|voorbeelden|zie ook
    podsumowanie|przegląd|przykład|przykłady|wprowadzenie|wstęp|wymagania|zobacz też
    概述|概览|简介|介绍|示例|总结|参见|另请参阅|下一步|前提条件
    概要|はじめに|例|まとめ|関連項目|次のステップ
    مقدمة|نظرة عامة|أمثلة|مثال|ملخص|انظر أيضا|المتطلبات
"""
_GENERIC_HEADINGS = frozenset(heading.strip() for heading in _GENERIC_LIST.replace("\n", "|").split("|"))


def suggest(context: AnswerContext, cited: Collection[str], turn: Turn) -> list[str]:
    """Return further questions, best first; none beside a selection, or if the turn has used up its time.

    Args:
        cited: ids of the passages that the answer cites.
    """
    retrieval, snapshot = context.retrieval, context.snapshot
    # An answer from a tool alone has no search results.
    if retrieval is None or not retrieval.candidates or snapshot is None or turn.query.selected_text:
        return []
    questions = (*turn.conversation.questions, *filter(None, (turn.query.query,)))
    tester = _SuggestionTester(snapshot, retrieval.calibration, questions)
    suggestions = list[str]()
    try:
        for chunk in _find_uncited(context, retrieval, cited):
            if len(suggestions) == MAX_SUGGESTIONS or tester.is_spent or not turn.deadline.seconds_left:
                break
            text = tester.name_section(chunk)
            if text and tester.leads_to(text, chunk):
                suggestions.append(text)
    except IndexFault:
        # The answer is complete; its generation may have been deleted by now.
        return suggestions
    return suggestions


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


def _find_uncited(context: AnswerContext, retrieval: Retrieval, cited: Collection[str]) -> Iterator[Chunk]:
    """Yield a chunk of each section that may be suggested: first search results, then neighbors of the citations."""
    cited_chunks = {p.chunk_id for p in context.request.passages if p.id in cited}
    related = retrieval.candidates[0].score * MIN_RELATIVE_SCORE
    strong = [
        c.chunk
        for c in choose(retrieval.strong, _MAX_SECTIONS)
        if c.score >= related or c.chunk.chunk_id in cited_chunks
    ]
    quoted = [chunk for chunk in strong if chunk.chunk_id in cited_chunks]
    around = chain.from_iterable(_find_near(chunk, context.pages[chunk.source_file_path]) for chunk in quoted)
    sections = set(map(section, quoted))
    for chunk in chain(strong, around):
        if chunk.type != MEMORY and section(chunk) not in sections:
            sections.add(section(chunk))
            yield chunk


def _find_near(chunk: Chunk, page: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks near a chunk on its page, nearest first and those behind it before those above."""
    offsets = ((c.chunk_index - chunk.chunk_index, c) for c in page)
    neighbors = [(abs(offset), offset < 0, c) for offset, c in offsets if 0 < abs(offset) <= MAX_CHUNK_DISTANCE]
    return [c for _, _, c in sorted(neighbors, key=lambda ranked: ranked[:2])]


class _SuggestionTester:
    """Tries suggestions by searches in the index.

    Args:
        questions: the reader's questions, oldest first.
    """

    def __init__(self, snapshot: Snapshot, calibration: Calibration, questions: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._calibration = calibration
        self._languages = snapshot.head.languages
        self._question_terms = [_terms(text, self._languages) for text in questions]
        self._remaining_searches = MAX_SEARCHES
        self._started = time.perf_counter()

    @property
    def is_spent(self) -> bool:
        """Whether the number of searches or the time is used up."""
        return self._remaining_searches <= 0 or time.perf_counter() - self._started > MAX_SECONDS

    def name_section(self, chunk: Chunk) -> str:
        """Return the suggestion of a section; empty if its heading says nothing, or nothing new."""
        text, terms = _make_wording(
            chunk.heading_path[-1] if chunk.heading_path else "", chunk.chapter_title, self._languages
        )
        # A suggestion without a word beyond the question's repeats the question.
        if not text or terms <= self._question_terms[-1] or terms in self._question_terms:
            return ""
        self._question_terms.insert(0, terms)
        return text

    def leads_to(self, text: str, chunk: Chunk) -> bool:
        """Whether a search for a text finds this section first."""
        self._remaining_searches -= 1
        return self._first_section(text, chunk.language if len(self._languages) > 1 else "") == section(chunk)

    def _first_section(self, text: str, language: str) -> SectionKey | None:
        """Return `_search_first` from a cache of the generation; its keys are headings, never readers' words."""
        firsts = _FIRST_SECTIONS.setdefault(self._snapshot, {})
        if (text, language) in firsts:
            return firsts[text, language]
        if len(firsts) >= _CACHE_SIZE:
            _FIRST_SECTIONS[self._snapshot] = firsts = {}
        firsts[text, language] = first = self._search_first(text, language)
        return first

    def _search_first(self, question: str, language: str) -> SectionKey | None:
        """Return the section that a search finds first, if it is evidence enough."""
        language_filter = In("language", (language,)) if language else None
        hits = self._snapshot.search_lexical(lexical.query_vector(question, self._languages), 1, language_filter)
        return next((section(hit.chunk) for hit in hits if self._answers(question, hit)), None)

    def _answers(self, question: str, hit: Hit) -> bool:
        """Whether a hit has enough evidence, by words alone. All words weigh the same, which saves an index look-up."""
        words = tuple(dict.fromkeys((word.terms,) for word in lexical.words(question, hit.chunk.language)))
        weights = dict.fromkeys((t for (terms,) in words for t in terms), 1.0)
        title = float(plain_heading(hit.chunk.chapter_title) in question)
        features = Matching(WeightedQuestion(words, (1.0,) * len(words)), weights).features(
            hit.lexical.among(weights), title=title
        )
        return self._calibration.of(features) >= self._calibration.floor


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
