"""Figures of one question: of its search by ranks, of its answer by counts, and of the confidence of answers.

They are from 0 to 1, and averaged over the questions that they are defined for with equal weight. `chapterverse eval
--help` defines them. Ranks start at 1, and None is "not found". The figures of ranks look at the first ten results, and
follow Manning, Raghavan and Schütze, "Introduction to Information Retrieval" (2008), chapter 8, with nDCG by Järvelin
and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002).

An answer is stored as counts. Precision and recall of its citations are those of Liu, Zhang and Liang, "Evaluating
verifiability in generative search engines" (2023), with the service's lexical check in place of human judges.

brier  mean squared difference of confidence and outcome, lower is better (Brier, 1950)
ece    difference of mean confidence and share of right answers in ten bins of width .1, weighted by the number of
       answers: expected calibration error (Naeini, Cooper and Hauskrecht, 2015)
risk   share of wrong answers among the most confident ones, by their share (El-Yaniv and Wiener, 2010)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from chapterverse_api.contract import AnswerStatus

#: From 1; None for "not found".
Rank: TypeAlias = Annotated[int, Field(ge=1)] | None
Ranks: TypeAlias = Sequence[Rank]
Count: TypeAlias = Annotated[int, Field(ge=0)]

#: Results that the figures look at.
DEPTH = 10
#: Prefix of a figure that counts pages instead of sections.
PAGE_PREFIX = "page."
#: Share of the unanswerable questions that were refused, and of the answerable ones that were not.
REFUSED, ANSWERED = "refused", "answered"
_BINS = 10


def recall(ranks: Ranks, k: int) -> float:
    """Return the share of the expected places among the first `k` results."""
    return sum(1 for _ in _within(ranks, k)) / len(ranks)


def hit(ranks: Ranks, k: int) -> float:
    """Return 1 if any expected place is among the first `k` results, else 0."""
    return float(any(True for _ in _within(ranks, k)))


def reciprocal_rank(ranks: Ranks) -> float:
    """Return 1 over the rank of the first expected place, 0 if none is among the first ten; its mean is MRR."""
    return 1 / min(_within(ranks, DEPTH), default=math.inf)


def ndcg(ranks: Ranks) -> float:
    """Return the discounted cumulated gain of the first ten results over that of the best order.

    Gains are binary and discounted by log2(rank + 1), the usual form since Burges et al. (2005). The best order has as
    many expected places first as ten results can hold.
    """
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(ranks), DEPTH) + 1))
    return math.fsum(1 / math.log2(rank + 1) for rank in _within(ranks, DEPTH)) / best


def _within(ranks: Ranks, k: int) -> Iterable[int]:
    return (rank for rank in ranks if rank is not None and rank <= k)


#: Metrics of one question's ranks, by name.
RANKED: Mapping[str, Callable[[Ranks], float]] = {
    "recall@3": partial(recall, k=3),
    "recall@5": partial(recall, k=5),
    "recall@10": partial(recall, k=10),
    "hit@1": partial(hit, k=1),
    "hit@5": partial(hit, k=5),
    "mrr": reciprocal_rank,
    "ndcg@10": ndcg,
}
#: Every retrieval figure that may have a bar.
METRICS = (*RANKED, *(PAGE_PREFIX + name for name in RANKED), REFUSED, ANSWERED)
#: Shares of an answer: the fields of `AnswerResult` with the part and the whole.
COUNTED: Mapping[str, tuple[str, str]] = {
    "citation_validity": ("valid", "citations"),
    "citation_precision": ("precise", "pairs"),
    "citation_recall": ("carried", "sentences"),
    "nuggets": ("contained", "nuggets"),
}
#: Every figure of answers.
ANSWER_METRICS = (
    *COUNTED, "cited.page", "cited.section", "begins", "key", "key.first", "key.marked", "quotes.whole", "quotes.once",
    "refused@unanswerable", "answered@answerable",
)  # fmt: skip
#: The share of false sentences that the check rejects, by how they were made false.
CAUGHT = {kind: f"caught@{kind}" for kind in ("foreign", "number", "negation")}


def of_ranks(anchor: Ranks, page: Ranks) -> dict[str, float]:
    """Return the figures of one answerable question, from the ranks of its sections and of its pages."""
    return {
        **{name: measure(anchor) for name, measure in RANKED.items()},
        **{PAGE_PREFIX + name: measure(page) for name, measure in RANKED.items()},
    }


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None for no values."""
    return math.fsum(values) / len(values) if values else None


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """A cited address, and whether it is in an expected section ("anchor") or only on its page ("page")."""

    url: str
    match: Literal["anchor", "page"] | None = None


class AnswerOutcome(NamedTuple):
    """Confidence of an answer, 0 to 1, and whether it was right."""

    confidence: float
    right: bool


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The answer to one question.

    Attributes:
        citations, valid: number of citations in all segments, and of valid ones.
        sentences, carried: number of sentences with a claim, and of those that a section cited there supports.
        pairs, precise: number of pairs of a sentence and its citation, and of those whose section supports it.
        nuggets, contained: number of expected facts, and of those in the answer.
        quotes, silent_cuts, repeated: number of quotes, of pieces that they cut without saying so, and of lines that
            two of them share.
        key: the figures of `quoting.AnswerKey`; empty if the row states no key.
        seconds: the seconds until the sources (`retrieve`), the first words (`first`) and the end (`total`).
        degraded: the reason why the answer was not made as configured, or None; with one it counts for no figure.
    """

    status: AnswerStatus
    confidence: Annotated[float, Field(ge=0, le=1)]
    text: str
    cited: tuple[CitationCounts, ...] = ()
    citations: Count = 0
    valid: Count = 0
    sentences: Count = 0
    carried: Count = 0
    pairs: Count = 0
    precise: Count = 0
    nuggets: Count = 0
    contained: Count = 0
    quotes: Count = 0
    silent_cuts: Count = 0
    repeated: Count = 0
    key: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    degraded: str | None = None

    @property
    def refused(self) -> bool:
        return self.status == "not_in_docs"

    def count(self, name: str) -> tuple[int, int]:
        """Return part and whole of a figure in `COUNTED`."""
        part, whole = COUNTED[name]
        return getattr(self, part), getattr(self, whole)

    def figures(self, answerable: bool) -> dict[str, float]:
        """Return the figures that are defined for this answer, by name."""
        if self.degraded:
            return {}
        counts = {name: self.count(name) for name in COUNTED}
        figures = {name: part / whole for name, (part, whole) in counts.items() if whole}
        if self.quotes:
            figures |= {"quotes.whole": float(not self.silent_cuts), "quotes.once": float(not self.repeated)}
        if not answerable:
            return {**figures, "refused@unanswerable": float(self.refused)}
        return {
            **figures,
            **self.key,
            "cited.page": float(any(c.match for c in self.cited)),
            "cited.section": float(any(c.match == "anchor" for c in self.cited)),
            "answered@answerable": float(not self.refused),
        }

    def outcome(self, answerable: bool) -> AnswerOutcome | None:
        """Return confidence and correctness, None for a refusal.

        An answer is right if it contains any expected fact; without expected facts, if it cites an expected page.
        """
        if self.refused or self.degraded:
            return None
        right = self.contained > 0 if self.nuggets else any(c.match for c in self.cited)
        return AnswerOutcome(self.confidence, answerable and right)


@dataclass(frozen=True, slots=True)
class MutationCounts:
    """Number of false sentences given to the check, and of those that it rejected."""

    tried: Annotated[int, Field(ge=1)]
    caught: Count

    @property
    def share(self) -> float:
        return self.caught / self.tried


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of similar confidence: mean confidence, share of right ones, number."""

    confidence: float
    right: float
    answers: int


def brier(outcomes: Sequence[AnswerOutcome]) -> float | None:
    return mean([(o.confidence - o.right) ** 2 for o in outcomes])


def bins(outcomes: Sequence[AnswerOutcome]) -> list[Bin]:
    """Return the non-empty bins, least confident first."""
    by_bin: defaultdict[int, list[AnswerOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_bin[min(_BINS - 1, int(outcome.confidence * _BINS))].append(outcome)
    return [
        Bin(math.fsum(o.confidence for o in group) / len(group), sum(o.right for o in group) / len(group), len(group))
        for _, group in sorted(by_bin.items())
    ]


def ece(outcomes: Sequence[AnswerOutcome]) -> float | None:
    return mean([abs(b.confidence - b.right) for b in bins(outcomes) for _ in range(b.answers)])


def risks(outcomes: Sequence[AnswerOutcome]) -> dict[float, float]:
    """Return the risk by coverage, at each tenth of the answers. Answers of equal confidence count with their mean."""
    tied: defaultdict[float, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        tied[outcome.confidence].append(outcome.right)
    shares = [sum(group) / len(group) for _, group in sorted(tied.items(), reverse=True) for _ in group]
    counts = {max(1, round(len(shares) * tenth / _BINS)) for tenth in range(1, _BINS + 1)} if shares else ()
    return {count / len(shares): 1 - math.fsum(shares[:count]) / count for count in sorted(counts)}
