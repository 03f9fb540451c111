"""Groups turns by what they ask about: unanswered questions by subject, all others by the section that answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from chapterverse.ext.report.gaps import MAX_SEARCHED, QuestionSearch, Searcher, join
from chapterverse.ext.report.masking import mask
from chapterverse.ext.report.turns import AskedTurn, count_readers, normalize
from chapterverse.model import Chunk
from chapterverse.progress import Progress, track
from chapterverse.text.lexical import terms_of

_MAX_LACKS = 8
#: The states of a thread in a group, in the order of a report.
STATES = ("answered", "hedged", "refused", "thumbed_down", "asked_again")


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
        for word, terms in each.terms.items():
            if not terms & held:
                lacks[word] += each.words[word]
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
