"""Labelled answers of a language model, as the check of sentences gets them: what it kept, dropped, and called partial.

A row of `records.jsonl`: `id`, `set` (its site), `question`, `sources` [{number, path, text}], `answer`, `units`
(`answer` in order: `text`, `kind` claim | lead_in | gap | code, `sources` that carry it), `flawed` (the same answer
with a few claims made wrong) and `flaws` (`text`, `was`, `type`). A claim is lost when most of its letters end without
any citation; a flaw is caught when its letters do, and one that only names a wrong source also when the sources that
are left are the right ones.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chapterverse.text import lexical
from chapterverse_api.draft.draft import Draft, Span
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.results import VerifiedDraft

#: Checks a draft against passages, with the idf of a site, in a fold of the questions.
Check = Callable[[Draft, Sequence[Passage], "Weights", int], VerifiedDraft]

FOLDS = 5
_MARK = re.compile(r"\s?\[(\d{1,2})\]")


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of an answer without its marks; `right` are the sources that carry it, `cited` those that it names."""

    text: str
    cited: tuple[str, ...]
    kind: str
    right: frozenset[str]
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, honest or flawed, with what it was made from."""

    id: str
    site: str
    question: str
    fold: int
    passages: tuple[Passage, ...]
    units: tuple[Unit, ...]
    gaps: tuple[str, ...]

    @property
    def draft(self) -> Draft:
        return tuple(part for unit in self.units for part in (Span(unit.text, unit.cited), Span(self.gaps[0])))


def fold_of(question: str) -> int:
    """Return the fold of a question: by its words alone, so that it never moves."""
    return zlib.crc32(" ".join(question.lower().split()).encode()) % FOLDS


def load(path: Path) -> list[tuple[Answer, Answer]]:
    """Return every answer that says something, honest and flawed."""
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    return [(_answer(row, flawed=False), _answer(row, flawed=True)) for row in rows if row.get("units")]


def _answer(row: Mapping[str, Any], *, flawed: bool) -> Answer:
    passages = tuple(
        Passage(str(s["number"]), tuple(s["path"].split(" › ")), s["text"], s["text"]) for s in row["sources"]
    )
    flaws = {f["was"]: f for f in row["flaws"]} if flawed else {}
    units = tuple(_unit(u, flaws.get(u["text"])) for u in row["units"])
    return Answer(row["id"], row["set"], row["question"], fold_of(row["question"]), passages, units, ("\n\n",))


def _unit(unit: Mapping[str, Any], flaw: Mapping[str, str] | None) -> Unit:
    text = flaw["text"] if flaw else unit["text"]
    right = frozenset(map(str, unit["sources"]))
    cited = tuple(dict.fromkeys(_MARK.findall(text)))
    # Code carries no marks; a model's own citations, or the sentence before it, say where it is from.
    if not cited and unit["kind"] == "code":
        cited = tuple(sorted(right))
    return Unit(_MARK.sub("", text), cited, unit["kind"], right, flaw["type"] if flaw else "")


class Weights:
    """The idf of terms over all sources of a site, as an index of it would give it."""

    def __init__(self, answers: Sequence[Answer], site: str) -> None:
        texts = {(p.path, p.text) for a in answers if a.site == site for p in a.passages}
        self._counts: Counter[int] = Counter()
        for path, text in texts:
            self._counts.update(lexical.terms_of(lexical.words(f"{' '.join(path)} {text}")))
        self._sections = len(texts)

    def __call__(self, text: str) -> Mapping[int, float]:
        terms = lexical.terms_of(lexical.words(text))
        return {t: math.log(1 + (self._sections - n + 0.5) / (n + 0.5)) for t in terms for n in [self._counts[t]]}


@dataclass(slots=True)
class Tally:
    """How often something happened, of how many."""

    hits: int = 0
    of: int = 0

    def add(self, happened: bool) -> None:
        self.hits += happened
        self.of += 1

    def __str__(self) -> str:
        low, high = interval(self.hits, self.of)
        share = self.hits / self.of if self.of else 0.0
        return f"{100 * share:5.1f} % ({self.hits} of {self.of}; {100 * low:.0f} to {100 * high:.0f} %)"


def interval(hits: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(slots=True)
class Report:
    """What a check did over the labelled answers.

    Attributes:
        lost: true claims that ended without a citation.
        moved: true claims whose citations all name sources that are not labelled as theirs.
        caught: flaws of each type that ended without a wrong citation.
        code: true blocks of code that lost theirs.
        silent: units of each other kind that were taken for a claim.
        partial: whole answers that are called partial.
        confidence: of each unit with a score, and whether it was right.
    """

    lost: Tally = field(default_factory=Tally)
    moved: Tally = field(default_factory=Tally)
    code: Tally = field(default_factory=Tally)
    caught: dict[str, Tally] = field(default_factory=dict)
    partial: Tally = field(default_factory=Tally)
    open: Tally = field(default_factory=Tally)

    @property
    def all_caught(self) -> Tally:
        return Tally(sum(t.hits for t in self.caught.values()), sum(t.of for t in self.caught.values()))

    def __str__(self) -> str:
        lines = [
            f"true claims that lose their citation    {self.lost}",
            f"true claims cited elsewhere              {self.moved}",
            f"true code that loses its citation        {self.code}",
            f"planted flaws that lose theirs           {self.all_caught}",
            *(f"  {kind:38} {tally}" for kind, tally in sorted(self.caught.items(), key=lambda kv: -kv[1].hits)),
            f"whole answers called partial             {self.partial}",
            f"answers that leave a part open, so called {self.open}",
        ]
        return "\n".join(lines)


def report(answers: Sequence[tuple[Answer, Answer]], check: Check, partial: Callable[[VerifiedDraft], bool]) -> Report:
    """Run a check over all answers, each by the state of its fold."""
    whole = [one for pair in answers for one in pair]
    weights = {site: Weights(whole, site) for site in {a.site for a in whole}}
    result = Report()
    for honest, flawed in answers:
        verified = check(honest.draft, honest.passages, weights[honest.site], honest.fold)
        for unit, ids in outcomes(honest, verified):
            if unit.kind == "code":
                result.code.add(not ids)
            elif unit.kind == "claim":
                result.lost.add(not ids)
                result.moved.add(bool(ids) and not ids & unit.right)
        is_open = any(unit.kind == "gap" for unit in honest.units)
        (result.open if is_open else result.partial).add(partial(verified))
        verified = check(flawed.draft, flawed.passages, weights[flawed.site], flawed.fold)
        for unit, ids in outcomes(flawed, verified):
            if unit.flaw:
                tally = result.caught.setdefault(unit.flaw, Tally())
                tally.add(not ids or (unit.flaw == "wrong_source" and ids <= unit.right))
    return result


def ends(answers: Sequence[tuple[Answer, Answer]], check: Check) -> list[tuple[str, bool]]:
    """Return of each claim, true ones first, its flaw, "" without one, and whether it is lost or caught."""
    whole = [one for pair in answers for one in pair]
    weights = {site: Weights(whole, site) for site in {a.site for a in whole}}
    found: list[tuple[str, bool]] = []
    for answer in (*(honest for honest, _ in answers), *(flawed for _, flawed in answers)):
        verified = check(answer.draft, answer.passages, weights[answer.site], answer.fold)
        flawed = len(found) >= sum(unit.kind == "claim" for honest, _ in answers for unit in honest.units)
        for unit, ids in outcomes(answer, verified):
            if unit.flaw if flawed else unit.kind == "claim":
                found.append((unit.flaw, not ids or (unit.flaw == "wrong_source" and ids <= unit.right)))
    return found


def outcomes(answer: Answer, verified: VerifiedDraft) -> Iterator[tuple[Unit, frozenset[str]]]:
    """Yield each unit with the ids that cite most of its letters; none where most of them are without."""
    letters = [(char, span.citations) for span in verified.spans for char in span.text]
    at = 0
    for unit in answer.units:
        own = [citations for char, citations in letters[at : at + len(unit.text)] if char.isalnum()]
        at += len(unit.text) + len(answer.gaps[0])
        held = [citations for citations in own if citations]
        yield unit, frozenset(i for c in held for i in c) if 2 * len(held) > len(own) else frozenset()
