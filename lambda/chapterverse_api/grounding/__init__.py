"""Checks a draft sentence by sentence against the passages, whichever generator wrote it.

What claims nothing is told apart first (`claims`). Every other sentence is split into clauses and aligned with the
sentences, items, rows and lines of code of the passages (`reading`); features of the pair (`features`) go into a small
trained model (`model`), and a sentence of a passage to the letter needs none. `verdict.judge` says whether passages
support a sentence, contradict it or are silent.

A citation holds if its id was sent with this request and its passage supports the sentence, or adds to what several
cited ones support together. One that does not hold moves to the best passage that supports the sentence, unless a cited
one contradicts it, or is dropped. A sentence without a citation gets one where a passage clearly supports it, else
it stands without and is counted, if it claims something.

Between what the words carry surely and what they don't lies what they leave undecided: there a model may have a second
vote (`checkers`), which can take a citation away and never give one.

The confidence of an answer is the mean probability, over all that claims something, that it is said by what is cited
for it; calibrated on labelled answers of a language model (`site_example/docs/how-it-works/answers.md`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from chapterverse.text.sentences import Sentence, SentenceReader, split
from chapterverse_api.generation import Check, Draft, Passage, Span
from chapterverse_api.grounding.claims import asserts, leaves_open, says_nothing
from chapterverse_api.grounding.model import Model, trained
from chapterverse_api.grounding.quotation import verbatim
from chapterverse_api.grounding.reading import Claim, Source
from chapterverse_api.grounding.verdict import LEAST_WORDS, Outcome, Verdict, judge

#: Gives the idf of each term of a text in this index; terms that it leaves out weigh 1.
Weigh: TypeAlias = Callable[[str], Mapping[int, float]]

#: Of more unconfirmed claims, and at least so many, an answer is partial.
MOST_UNCONFIRMED, LEAST_UNCONFIRMED = 0.2, 2
#: A passage that holds less of a sentence's words, by idf, is not asked whether it says it, unless it is cited.
_ASKED = 0.45


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """What the check made of one sentence.

    Attributes:
        claimed: the ids that the generator gave.
        citations: the ids that hold.
        outcome: what the passage that comes nearest says of it; None where none was asked.
        probability: that the sentence is said by its sources, 0 to 1; None where it claims nothing.
    """

    text: str
    claimed: tuple[str, ...]
    citations: tuple[str, ...]
    check: Check
    outcome: Outcome | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class Verified:
    """A draft that was checked.

    Attributes:
        checks: of each sentence, and of each quote that stands to the letter in its passage as a whole.
        spans: the draft's text, unchanged, sentence by sentence.
        dropped: how many citations that a sentence claimed did not hold.
        confidence: 0 to 1 over all that claims something; 0 where nothing does.
        flagged: how many sentences claim something that no passage was found to say.
        claims: how many sentences claim something.
        leaves_open: whether the draft says that the documentation leaves a part open.
    """

    spans: Draft
    dropped: int
    confidence: float
    flagged: int = 0
    claims: int = 0
    leaves_open: bool = False
    checks: tuple[SentenceCheck, ...] = ()

    @property
    def cited(self) -> bool:
        """Whether any citation holds."""
        return any(span.citations for span in self.spans)

    @property
    def partial(self) -> bool:
        """Whether a part is left open by the draft's own words, or too much of it is unconfirmed."""
        unconfirmed = self.flagged >= LEAST_UNCONFIRMED and self.flagged > MOST_UNCONFIRMED * self.claims
        return self.leaves_open or unconfirmed or any(span.cut for span in self.spans)


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """What the passages say of one sentence.

    Attributes:
        claims: whether the sentence claims anything that a passage could carry.
        id: of the passage that supports or contradicts it; None where all are silent.
        quote: the sentence, item, row or line of that passage that says so, as it stands there; "" without one.
        probability: 0 to 1, that the passages say it.
    """

    outcome: Outcome
    claims: bool
    id: str | None = None
    quote: str = ""
    probability: float = 0.0


class Verifier:
    """Checks the sentences of one answer, in order, against the passages that were sent; these are read once.

    Args:
        passages: best first.
        context: what the reader says of themselves: to repeat it claims nothing.
    """

    def __init__(
        self, passages: Sequence[Passage], language: str, weigh: Weigh, model: Model | None = None, *, context: str = ""
    ) -> None:
        self._passages = passages
        self._sources = {p.id: Source(p, language) for p in passages}
        own = Passage("", (), context, context, frozenset(), 0.0, 0.0, None, None)
        self._context = Source(own, language) if context.strip() else None
        self._language, self._weigh = language, weigh
        self._model = model or trained()
        self._checked = list[CheckedSentence | SentenceCheck]()

    def check(self, sentence: Sentence, claimed: Sequence[str]) -> CheckedSentence:
        """Return a sentence with its citations that hold.

        Args:
            claimed: the ids that the generator gave.
        """
        one = CheckedSentence(sentence, claimed, self._sources, self._language, self._weigh, self._model)
        self._forgive(one)
        self._checked.append(one)
        return one

    def reject(self, one: CheckedSentence) -> None:
        """Take the citations of a sentence away, since a second vote is against it."""
        one.reject()
        self._forgive(one)

    def document(self, one: CheckedSentence) -> str:
        """Return the headings and texts that a sentence cites."""
        cited = (p for p in self._passages if p.id in one.citations)
        return "\n\n".join(f"{' › '.join(p.path)}\n\n{p.section}" for p in cited)

    def _forgive(self, one: CheckedSentence) -> None:
        """Let what only repeats the reader's own words claim nothing."""
        if one.flagged and self._context and judge(one.claim, [self._context], [], self._model).supports:
            one.claims = one.flagged = False

    def consult(self, sentence: Sentence) -> SourceVerdict:
        """Check a sentence that names no passage, as `check` does, and return which passage decides, by which words."""
        one = self.check(sentence, ())
        source = self._sources[one.citations[0]] if one.citations else one.against
        if source is None:
            return SourceVerdict("silent", one.claims, probability=one.probability or 0.0)
        unit = one.claim.align([source]).best
        return SourceVerdict(
            "supports" if one.citations else "contradicts",
            True,
            source.id,
            unit.verbatim if unit else "",
            one.probability or 0.0,
        )

    def check_quote(self, span: Span) -> Iterator[Span]:
        """Yield a quote with the citations that hold: whole where the passage that it cites holds it to the letter."""
        if verbatim(span, self._passages):
            self._checked.append(SentenceCheck(span.text, span.citations, span.citations, "confirmed", "supports", 1.0))
            yield replace(span, check="confirmed", mark=span.mark if (span.mark or "") in span.text else None)
            return
        for sentence in split(span.text):
            one = self.check(sentence, span.citations)
            yield Span(span.text[sentence.start : sentence.end], one.citations, check=one.check)

    def verified(self, spans: Iterable[Span]) -> Verified:
        """Return what the check amounts to, with the spans that were made of it."""
        every = [c for c in self._checked if isinstance(c, CheckedSentence)]
        quotes = len(self._checked) - len(every)
        # What stands to the letter in its section is said by it.
        measured = [c.probability for c in self._checked if c.probability is not None]
        return Verified(
            spans=tuple(spans),
            dropped=sum(c.dropped for c in every),
            confidence=sum(measured) / len(measured) if measured else 0.0,
            flagged=sum(c.flagged for c in every),
            claims=sum(c.claims or bool(c.citations) for c in every) + quotes,
            # A passage that says so of something is only quoted.
            leaves_open=any(
                leaves_open(c.sentence.said) for c in every if c.sentence.kind == "prose" and not c.citations
            ),
            checks=tuple(c if isinstance(c, SentenceCheck) else c.record for c in self._checked),
        )


def verify(
    draft: Draft,
    passages: Sequence[Passage],
    language: str,
    weigh: Weigh,
    model: Model | None = None,
    supports: Callable[[str, str], bool] | None = None,
) -> Verified:
    """Check a whole draft against the passages that were sent, best passage first.

    Args:
        supports: the second vote, on a document and a claim; the words decide alone where it is left out.
    """
    verifier, spans = Verifier(passages, language, weigh, model), list[Span]()
    for part in _parts(draft):
        if part[0].kind == "framing":
            spans.extend(replace(span, citations=()) for span in part)
            continue
        if part[0].kind == "quote":
            for span in part:
                spans.extend(verifier.check_quote(span))
            continue
        text = "".join(span.text for span in part)
        for sentence, claimed in _claimed(part):
            one = verifier.check(sentence, claimed)
            if supports and one.undecided and not supports(verifier.document(one), sentence.said):
                verifier.reject(one)
            spans.append(Span(text[sentence.start : sentence.end], one.citations, check=one.check))
    if spans and any(span.cut for span in draft):
        spans[-1] = replace(spans[-1], cut=True)
    return verifier.verified(spans)


def _parts(draft: Draft) -> Iterator[list[Span]]:
    """Yield the draft's spans in groups of one kind; our own framing each alone."""
    group: list[Span] = []
    for span in draft:
        if group and (span.kind != group[-1].kind or span.kind == "framing"):
            yield group
            group = []
        group.append(span)
    if group:
        yield group


def _claimed(spans: Sequence[Span]) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Yield the sentences of spans, each with the ids that are claimed for any part of it."""
    claims, reader, end = Claims(), SentenceReader(), 0
    for span in spans:
        end += len(span.text)
        claims.add(end, span.citations)
    text = "".join(span.text for span in spans)
    for sentence in reader.read(text, last=True):
        yield sentence, claims.of(text, sentence)


class Claims:
    """The ids that a generator claims for stretches of its text."""

    def __init__(self) -> None:
        self._stretches: deque[tuple[int, int, tuple[str, ...]]] = deque()
        self._end = 0

    def add(self, end: int, ids: tuple[str, ...]) -> None:
        """Take what is claimed for all up to `end`."""
        self._stretches.append((self._end, end, ids))
        self._end = end

    def of(self, text: str, sentence: Sentence) -> tuple[str, ...]:
        """Return the ids that are claimed for any part of a sentence, which stands behind those asked for before."""
        found: dict[str, None] = {}
        end = sentence.start + len(text[sentence.start : sentence.end].rstrip())
        while self._stretches and self._stretches[0][1] <= sentence.start:
            self._stretches.popleft()
        for start, stop, ids in self._stretches:
            if start >= end:
                break
            if ids and text[max(start, sentence.start) : min(stop, end)].strip():
                found.update(dict.fromkeys(ids))
        return tuple(found)


class CheckedSentence:
    """A sentence with the citations that hold.

    Attributes:
        claims: whether it claims something.
        flagged: whether it does, and no source was found to say it.
        against: the passage that contradicts it most likely, None where none was found to.
    """

    def __init__(
        self,
        sentence: Sentence,
        claimed: Sequence[str],
        sources: Mapping[str, Source],
        language: str,
        weigh: Weigh,
        model: Model,
    ) -> None:
        self.sentence, self.claimed, self._model = sentence, tuple(claimed), model
        self._sources = list(sources.values())
        self.claim = Claim(sentence.said, sentence.kind, language, weigh(sentence.said))
        self.claims = asserts(sentence, self.claim)
        self.against: Source | None = None
        self._against = float("-inf")
        self._best: Verdict | None = None
        sent = [sources[i] for i in claimed if i in sources]
        self.citations = tuple(s.id for s in self._supporting(sent, claimed))
        self.dropped = sum(i not in self.citations for i in claimed)
        self.flagged = not self.citations and self.claims
        self._rejected = False

    @property
    def check(self) -> Check:
        return "confirmed" if self.citations else "unconfirmed" if self.flagged else "none"

    @property
    def undecided(self) -> bool:
        """Whether the words alone are not sure of its citations."""
        return bool(self.citations) and self._best is not None and self._best.score < self._model.decided

    def reject(self) -> None:
        """Drop the citations."""
        self.dropped += len(self.citations)
        self.citations, self.flagged, self._rejected = (), self.claims, True

    @property
    def empty(self) -> bool:
        """Whether there is no word in it that could rest on anything."""
        return not self.claim.content and not self.claim.literals

    @property
    def probability(self) -> float | None:
        """Return how probable it is that the sentence is said by its sources; None where it claims nothing."""
        if not (self.claims or self.citations):
            return None
        # No passage speaks of it enough to be asked, or a second vote is against it.
        return self._model.probability(self._best.score) if self._best and not self._rejected else 0.0

    @property
    def outcome(self) -> Outcome | None:
        if self._rejected:
            return "silent"
        return self._best.outcome if self._best else None

    @property
    def record(self) -> SentenceCheck:
        return SentenceCheck(
            self.sentence.said, self.claimed, self.citations, self.check, self.outcome, self.probability
        )

    def _judge(self, cited: Sequence[Source], *, claimed: bool = True) -> Verdict:
        others = [s for s in self._sources if s not in cited]
        found = judge(self.claim, cited, others, self._model, claimed=claimed)
        if self._best is None or found.score > self._best.score:
            self._best = found
        if found.outcome == "contradicts" and found.score > self._against:
            self.against, self._against = cited[0], found.score
        return found

    def _supporting(self, sent: Sequence[Source], claimed: Sequence[str]) -> Sequence[Source]:
        if self.empty or says_nothing(self.claim):
            return ()
        if sent:
            alone = {s.id: self._judge([s]) for s in sent}
            kept: Sequence[Source] = [s for s in sent if alone[s.id].supports]
            if not kept and len(sent) > 1 and self._judge(sent).supports:
                kept = self._adding(sent)
            # What a cited passage denies is not said by another one that merely shares its words.
            if kept or any(v.outcome == "contradicts" for v in alone.values()):
                return kept
        elif not claimed and not self.claims:
            return ()
        for source in self._candidates(sent):
            found = self._judge([source], claimed=False)
            if found.supports:
                return [source]
            if found.outcome == "contradicts":
                # Of what holds the most of its words first: another one that supports it merely shares some.
                break
        return ()

    def _adding(self, sent: Sequence[Source]) -> Sequence[Source]:
        """Return the sources that hold a clause of the sentence best."""
        used = {id(source) for _, _, source in self.claim.align(sent).clauses}
        return [s for s in sent if id(s) in used] or sent[:1]

    def _candidates(self, sent: Sequence[Source]) -> Iterable[Source]:
        shares = [(self.claim.share(s.terms), -n, s) for n, s in enumerate(self._sources) if s not in sent]
        found = [(share, n, s) for share, n, s in shares if share >= _ASKED or self.claim.kind == "code"]
        return [s for _, _, s in sorted(found, key=lambda f: f[:2], reverse=True)[:3]]


__all__ = [
    "LEAST_WORDS",
    "CheckedSentence",
    "Claim",
    "Claims",
    "Outcome",
    "SentenceCheck",
    "Source",
    "SourceVerdict",
    "Verdict",
    "Verified",
    "Verifier",
    "judge",
    "verify",
]
