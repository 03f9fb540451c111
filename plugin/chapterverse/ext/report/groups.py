"""Groups turns by what they ask about: unanswered questions by subject, all others by the section that answers.

A subject is found by the words of the questions and of what an index has nearest. Two questions are near if they share
rare words, or if the sections nearest to them do. Groups are joined while the mean nearness of their questions is high
enough (average linkage), so that no chain of questions joins two subjects. No model and no service is asked, and the
order of the questions changes nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from chapterverse.calibration import idf_of, read_question
from chapterverse.ext.report.masking import mask
from chapterverse.ext.report.turns import AskedTurn, count_readers, normalize
from chapterverse.model import PAGE, Chunk
from chapterverse.progress import Progress, track
from chapterverse.store import Snapshot
from chapterverse.text import lexical
from chapterverse.text.lexical import terms_of

#: Most distinct questions that are searched: each takes some milliseconds.
MAX_SEARCHED = 2000
#: Chunks that tell what a question is about, and the terms of these that count.
_CHUNKS, _PROFILE_TERMS = 5, 24
#: Share of the question's own words in its nearness, and the least nearness of one subject; see `report_month.py`.
_OWN_SHARE, LEAST_NEARNESS = 0.7, 0.6
#: What is less near counts as 0: most pairs of a large log. What is nearer than the other is one question.
_LEAST_PAIR, _SAME = 0.2, 0.9

Profile = Mapping[int, float]
_MAX_LACKS = 8
#: The states of a thread in a group, in the order of a report.
STATES = ("answered", "hedged", "refused", "thumbed_down", "asked_again")


@dataclass(frozen=True, slots=True)
class QuestionSearch:
    """A question as an index sees it.

    Attributes:
        words: the weights of its content words as written, and the terms of each, as alternatives.
        chunks: the nearest chunks with their scores.
        profile: the weights of its own terms and of the nearest chunks', of length 1.
    """

    words: Mapping[str, tuple[float, set[int]]]
    chunks: Sequence[tuple[Chunk, float]]
    profile: Profile


class Searcher:
    """Searches one generation of an index by words alone."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.head = snapshot.head
        self._languages = snapshot.head.languages
        self._idf: dict[int, float] = {}

    def search(self, question: str) -> QuestionSearch:
        weighted, idf = read_question(question, self._languages, self._snapshot)
        words = list(lexical.question_words(question, self._languages))
        hits = self._snapshot.search_lexical(lexical.query_vector(question, self._languages), _CHUNKS) if words else []
        hits = [hit for hit in hits if hit.chunk.type == PAGE]
        own = {word[0][0]: weight for word, weight in zip(weighted.words, weighted.weights, strict=True)}
        near: dict[int, float] = defaultdict(float)
        for hit in hits:
            for term, weight in zip(hit.lexical.indices, hit.lexical.values, strict=True):
                near[term] += weight * hit.score
        unknown = sorted(near.keys() - self._idf.keys())
        for term, count in zip(unknown, self._snapshot.document_frequencies(unknown) if unknown else (), strict=True):
            self._idf[term] = idf_of(count, self.head.chunks)
        weighed = {term: weight * self._idf[term] for term, weight in near.items()}
        strongest = dict(sorted(weighed.items(), key=lambda item: (-item[1], item[0]))[:_PROFILE_TERMS])
        by_word: dict[str, set[int]] = defaultdict(set)
        for word in words:
            by_word[word.surface].update(word.terms)
        return QuestionSearch(
            {word: (max(idf.get(term, 0.0) for term in terms), terms) for word, terms in by_word.items()},
            [(hit.chunk, hit.score) for hit in hits],
            _mix(_unit(own), _unit(strongest)),
        )

    def section(self, chunk: Chunk) -> list[Chunk]:
        """Return all chunks of the section that one is of."""
        page = self._snapshot.page(chunk.source_file_path)
        return [other for other in page if other.heading_path == chunk.heading_path]

    def words(self, chunk: Chunk) -> Iterator[lexical.Word]:
        return (word for code in self._languages for word in lexical.words(chunk.embed_text, code))

    def place(self, url: str) -> Chunk | None:
        """Return a chunk of the section with this address; None if the index has none."""
        return next(iter(self._snapshot.page(url, "url")), None)


def _unit(vector: Profile) -> Profile:
    length = math.sqrt(sum(weight * weight for weight in vector.values()))
    return {term: weight / length for term, weight in vector.items()} if length else {}


def _mix(own: Profile, near: Profile) -> Profile:
    mixed: dict[int, float] = defaultdict(float)
    for vector, share in ((own, _OWN_SHARE), (near, 1 - _OWN_SHARE)):
        for term, weight in vector.items():
            mixed[term] += share * weight
    return _unit(mixed)


def join(profiles: Sequence[Profile], least: float = LEAST_NEARNESS) -> list[list[int]]:
    """Return the numbers of the questions of each subject, by average linkage."""
    members, near = _nearness(profiles)

    def pairs(a: int) -> Iterator[tuple[float, int, int]]:
        """Yield a group's pairs that are near enough, each behind its mean nearness below 0."""
        for b, total in near[a].items():
            if (mean := total / (len(members[a]) * len(members[b]))) >= least:
                yield -mean, min(a, b), max(a, b)

    # The nearest first; of equally near ones that with the lowest numbers.
    queue = [pair for a in near for pair in pairs(a) if pair[1] == a]
    heapq.heapify(queue)
    while queue:
        negative_mean, a, b = heapq.heappop(queue)
        # A pair of which one was joined meanwhile has another nearness, or is none.
        total = near.get(a, {}).get(b, 0.0)
        if not total or total / (len(members[a]) * len(members[b])) != -negative_mean:
            continue
        members[a] += members.pop(b)
        for other, total in near.pop(b).items():
            del near[other][b]
            if other != a:
                near[a][other] = near[other][a] = near[a].get(other, 0.0) + total
        for pair in pairs(a):
            heapq.heappush(queue, pair)
    return [sorted(numbers) for numbers in members.values()]


def _nearness(profiles: Sequence[Profile]) -> tuple[dict[int, list[int]], dict[int, dict[int, float]]]:
    """Return the questions that say the same, each by the first, and the sums of the cosines of their pairs."""
    postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
    members: dict[int, list[int]] = {}
    near: dict[int, dict[int, float]] = {}
    for number, profile in enumerate(profiles):
        row: dict[int, float] = defaultdict(float)
        for term, weight in sorted(profile.items()):
            for other, others in postings[term]:
                row[other] += weight * others
        first = max(row, key=lambda other: (row[other], -other), default=number)
        if row[first] >= _SAME:
            members[first].append(number)
            continue
        members[number], near[number] = [number], {}
        for term, weight in profile.items():
            postings[term].append((number, weight))
        for other, value in row.items():
            if value >= _LEAST_PAIR:
                near[number][other] = near[other][number] = value
    sizes = {number: len(same) for number, same in members.items()}
    return members, {a: {b: v * sizes[a] * sizes[b] for b, v in row.items()} for a, row in near.items()}


@dataclass(slots=True)
class Group:
    """Turns that ask about one thing.

    Attributes:
        kind: "gap" is a subject that unanswered questions have in common, "section" what the log names.
        key: the address of the section; of a gap its number.
        turns: in the order of the log.
        searches: the distinct questions of a gap, masked, by how they are compared.
        nearest: the section that is nearest to a gap.
        missing: the content words of a gap's questions that this section doesn't hold, the most asked first.
    """

    kind: Literal["gap", "section"]
    key: str
    turns: list[AskedTurn] = field(default_factory=list)
    searches: dict[str, QuestionSearch] = field(default_factory=dict)
    nearest: Chunk | None = None
    missing: tuple[str, ...] = ()

    def states(self) -> dict[str, int]:
        """Return the number of readers by state; one reader may be in several."""
        counts = Counter(
            state for state, _ in {(state, turn.reader) for turn in self.turns for state in states_of(turn)}
        )
        return {state: counts[state] for state in STATES}

    @property
    def unanswered(self) -> int:
        return count_readers(turn for turn in self.turns if turn.is_unanswered)

    def sections(self) -> list[tuple[str, int]]:
        """Return the addresses that the turns name, with the number of readers, most first."""
        readers: dict[str, set[str]] = defaultdict(set)
        for turn in self.turns:
            for section in turn.sections:
                readers[section].add(turn.reader)
        return sorted(((s, len(found)) for s, found in readers.items()), key=lambda item: (-item[1], item[0]))

    def questions(self) -> list[str]:
        """Return the distinct questions as written, that of most readers first."""
        return [*distinct_questions(self.turns).values()]

    def lacks(self, questions: Iterable[str]) -> list[str]:
        """Return the missing words that stand in one of these questions, which are masked."""
        text = " ".join(questions).lower().replace("’", "'")
        return [word for word in self.missing if word in text][:_MAX_LACKS]


def states_of(turn: AskedTurn) -> Iterator[str]:
    if turn.status:
        yield turn.status
    if turn.is_rated_down:
        yield "thumbed_down"
    if turn.is_asked_again:
        yield "asked_again"


def group_turns(turns: Sequence[AskedTurn], searcher: Searcher | None, progress: Progress) -> list[Group]:
    """Return the groups, those with most unanswered readers first."""
    asked = dict(islice(unanswered_questions(turns).items(), MAX_SEARCHED))
    gaps = _find_gaps(asked, searcher, progress) if searcher else []
    by_question = {question: gap for gap in gaps for question in gap.searches}
    sections: dict[str, Group] = {}
    for turn in turns:
        gap = by_question.get(normalize(turn.question or "")) if turn.status != "answered" else None
        section = turn.sections[0] if turn.sections else ""
        (gap or sections.setdefault(section, Group("section", section))).turns.append(turn)
    return sorted([*gaps, *sections.values()], key=_rank)


def _rank(group: Group) -> tuple[int, int, int, str, str]:
    refused = count_readers(turn for turn in group.turns if turn.status == "refused")
    return -refused - group.unanswered, -count_readers(group.turns), -len(group.turns), group.kind, group.key


def unanswered_questions(turns: Iterable[AskedTurn]) -> dict[str, str]:
    """Return the distinct questions that were refused or answered with a reservation, as `distinct_questions`."""
    return distinct_questions(turn for turn in turns if turn.status != "answered")


def distinct_questions(turns: Iterable[AskedTurn]) -> dict[str, str]:
    """Return the distinct questions as written, by how they are compared, that of most readers first."""
    readers: dict[str, set[str]] = defaultdict(set)
    spelled: dict[str, str] = {}
    for turn in turns:
        if turn.question:
            key = normalize(turn.question)
            readers[key].add(turn.reader)
            spelled[key] = min(spelled.get(key, turn.question), turn.question)
    return {key: spelled[key] for key in sorted(readers, key=lambda key: (-len(readers[key]), key))}


def _find_gaps(questions: Mapping[str, str], searcher: Searcher, progress: Progress) -> list[Group]:
    """Return a group for each subject of these questions, without turns yet."""
    asked = track(progress, "Searching what was not answered", sorted(questions))
    # As written, because a name and a key are known by their capitals.
    searches = {question: searcher.search(mask(questions[question])) for question in asked}
    # What shares no word with the docs is about nothing that they could lack, such as "thanks".
    about = [question for question, found in searches.items() if found.chunks]
    return [
        _gap([about[member] for member in members], searches, searcher)
        for members in join([searches[question].profile for question in about])
    ]


def _gap(questions: Sequence[str], searches: Mapping[str, QuestionSearch], searcher: Searcher) -> Group:
    found = {question: searches[question] for question in questions}
    nearest = _nearest(found.values())
    held = terms_of(word for chunk in searcher.section(nearest) for word in searcher.words(chunk))
    lacks: dict[str, float] = defaultdict(float)
    for each in found.values():
        for word, (weight, terms) in each.words.items():
            if not terms & held:
                lacks[word] += weight
    missing = tuple(sorted(lacks, key=lambda word: (-lacks[word], word)))
    return Group("gap", min(questions), searches=found, nearest=nearest, missing=missing)


def _nearest(searches: Iterable[QuestionSearch]) -> Chunk:
    """Return a chunk of the section that is nearest to most of these questions."""
    scores: dict[tuple[str, ...], float] = defaultdict(float)
    chunks: dict[tuple[str, ...], Chunk] = {}
    for each in searches:
        for chunk, score in each.chunks:
            section = (chunk.source_file_path, *chunk.heading_path)
            scores[section] += score / each.chunks[0][1]
            chunks.setdefault(section, chunk)
    return chunks[min(scores, key=lambda section: (-scores[section], section))]
