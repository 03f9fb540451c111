"""Finds what unanswered questions are about, by the words of the questions and of what an index has nearest.

Two questions are near if they share rare words, or if the sections nearest to them do. Groups are joined while the mean
nearness of their questions is high enough (average linkage), so that no chain of questions joins two subjects.
No model and no service is asked, and the order of the questions changes nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from chapterverse.calibration import idf_of, read_question
from chapterverse.model import PAGE, Chunk
from chapterverse.store import Snapshot
from chapterverse.text import lexical

#: Most distinct questions that are searched: each takes some milliseconds.
MAX_SEARCHED = 2000
#: Chunks that tell what a question is about, and the terms of these that count.
_CHUNKS, _PROFILE_TERMS = 5, 24
#: Share of the question's own words in its nearness, and the least nearness of one subject; see `report_month.py`.
_OWN_SHARE, LEAST_NEARNESS = 0.7, 0.6
#: What is less near counts as 0: most pairs of a large log. What is nearer than the other is one question.
_LEAST_PAIR, _SAME = 0.2, 0.9

Profile = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class QuestionSearch:
    """A question as an index sees it.

    Attributes:
        words: its content words as written, with their weights.
        terms: the terms of each of these words, as alternatives.
        chunks: the nearest chunks with their scores.
        profile: the weights of its own terms and of the nearest chunks', of length 1.
    """

    words: Mapping[str, float]
    terms: Mapping[str, frozenset[int]]
    chunks: tuple[tuple[Chunk, float], ...]
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
        self._weigh(near)
        weighed = {term: weight * self._idf[term] for term, weight in near.items()}
        strongest = dict(sorted(weighed.items(), key=lambda item: (-item[1], item[0]))[:_PROFILE_TERMS])
        by_surface: dict[str, set[int]] = defaultdict(set)
        for word in words:
            by_surface[word.surface].update(word.terms)
        return QuestionSearch(
            {w: max(idf.get(t, 0.0) for t in terms) for w, terms in by_surface.items()},
            {w: frozenset(terms) for w, terms in by_surface.items()},
            tuple((hit.chunk, hit.score) for hit in hits),
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

    def _weigh(self, terms: Iterable[int]) -> None:
        unknown = sorted(set(terms) - self._idf.keys())
        for term, count in zip(unknown, self._snapshot.document_frequencies(unknown) if unknown else (), strict=True):
            self._idf[term] = idf_of(count, self.head.chunks)


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
    # One pair of each group, the nearest first; of equally near ones that with the lowest numbers.
    queue = [pair for a in near for pair in _nearest_pair(a, near, members, least)]
    heapq.heapify(queue)
    while queue:
        pair = heapq.heappop(queue)
        _, a, b = pair
        if a not in members:
            continue
        # A pair of others that were joined is no nearer than the nearer of both was.
        if [pair] == _nearest_pair(a, near, members, least):
            members[a] += members.pop(b)
            for other, sum_ in near.pop(b).items():
                near[other].pop(b)
                if other != a:
                    near[a][other] = near[other][a] = near[a].get(other, 0.0) + sum_
        for pair in _nearest_pair(a, near, members, least):
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


def _nearest_pair(
    a: int, near: Mapping[int, Mapping[int, float]], members: Mapping[int, Sequence[int]], least: float
) -> list[tuple[float, int, int]]:
    """Return the pair of a group and the nearest one after it, behind their mean nearness below 0; [] without any."""
    size = len(members[a])
    nearest = min(((-value / (size * len(members[b])), a, b) for b, value in near[a].items() if b > a), default=None)
    return [nearest] if nearest and -nearest[0] >= least else []
