"""Checks a draft sentence by sentence against the passages, whichever generator wrote it.

A citation of a sentence holds if its id was sent with this request and its passage carries the whole sentence: half of
its words, by idf, stand together in one place; each number and identifier stands there to the letter, where the
passage speaks of the same; and the sentence of the passage that is most like it does not say the opposite. Two
passages may carry a sentence between them if each adds to it (`support.together`). A citation that does not hold moves
to the best passage that carries the sentence, or is dropped. A sentence without one gets one only above a fixed floor
(`support.DERIVED`), else it stands without and is counted, if it claims something. A sentence of one or two words of
meaning claims as much as a long one: one clause of a passage must hold them all and not deny them.

How far the answer as a whole rests on what was sent is its confidence. The formula is lexical and was calibrated on
450 human-rated answers in English, the human-evaluated subset of IBM's mt-rag-benchmark (Apache-2.0): Spearman .657
with faithfulness, .589 for an LLM judge.
For each sentence that says something, cited or not:

    window   greatest share of its words, weighted by idf, in any 60-word window of a passage, moved by 15 words
    bigrams  share of its word pairs that stand in any passage
    hard     share of its numbers and identifiers that stand in any passage to the letter
    confidence = sigmoid(9.04 * (.6 * window + .25 * bigrams + .15 * hard) - 3.66), of the means over sentences

    sentences.py  a text to sentences
    literals.py   numbers and identifiers, in whichever way they are written
    polarity.py   negations and antonyms
    claims.py     what an answer must have a source for
    passage_sentences.py  the sentences of a passage
    support.py    how far a sentence rests on a passage
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from chapterverse_api.generation import Draft, Passage, Span
from chapterverse_api.grounding.claims import asserts, says_nothing
from chapterverse_api.grounding.sentences import Sentence, split
from chapterverse_api.grounding.support import DERIVED, SUPPORT, Claim, PassageText, Weigh, together

#: An answer of less confidence is refused. Chosen on the same 450 answers.
FLOOR = 0.4
#: A passage with so much more of a sentence's words is cited instead.
BETTER = 0.34
#: A sentence of fewer words can't be weighed; one clause must say all of it.
_LEAST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Verified:
    """A draft that was checked.

    Attributes:
        spans: the draft's text, unchanged, in runs of sentences that the same citations carry.
        dropped: how many citations that a sentence claimed did not hold.
        confidence: 0 to 1 over all that can be checked; 0 where nothing can.
        flagged: how many sentences claim something and are carried by no passage.
    """

    spans: Draft
    dropped: int
    confidence: float
    flagged: int = 0


def verify(draft: Draft, passages: Sequence[Passage], language: str, weigh: Weigh) -> Verified:
    """Check each span of a draft, sentence by sentence, against the passages that were sent, best passage first."""
    sources = {p.id: PassageText(p, language) for p in passages}
    spans, measured = list[Span](), list[_Measure]()
    dropped = flagged = 0
    for part in _parts(draft):
        if part[0].framing:
            spans.extend(replace(span, citations=()) for span in part)
            continue
        checked = [_Checked(s, c, sources, language, weigh) for s, c in _claimed(part)]
        dropped += sum(c.dropped for c in checked)
        flagged += sum(c.flagged for c in checked)
        measured.extend(measure for c in checked if (measure := c.measure(sources.values())))
        spans.extend(_runs(checked, "".join(span.text for span in part)))
    if spans and any(span.cut for span in draft):
        spans[-1] = replace(spans[-1], cut=True)
    return Verified(tuple(spans), dropped, _confidence(measured), flagged)


def _parts(draft: Draft) -> Iterator[list[Span]]:
    """Yield the draft's spans in groups that are our own framing, each alone, or a generator's."""
    group: list[Span] = []
    for span in draft:
        if group and (span.framing or group[-1].framing):
            yield group
            group = []
        group.append(span)
    if group:
        yield group


def _claimed(spans: Sequence[Span]) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Yield the sentences of spans, each with the ids that are claimed for any part of it."""
    text = "".join(span.text for span in spans)
    ends = list(accumulate(len(span.text) for span in spans))
    places = [(end - len(span.text), end, span.citations) for end, span in zip(ends, spans, strict=True)]
    first = 0
    for sentence in split(text):
        end = sentence.start + len(text[sentence.start : sentence.end].rstrip())
        while first < len(places) and places[first][1] <= sentence.start:
            first += 1
        ids: dict[str, None] = {}
        for start, stop, citations in places[first:]:
            if start >= end:
                break
            if text[max(start, sentence.start) : min(stop, end)].strip():
                ids.update(dict.fromkeys(citations))
        yield sentence, tuple(ids)


@dataclass(frozen=True, slots=True)
class _Measure:
    window: float
    bigrams: float
    hard: float | None


class _Checked:
    """A sentence with the citations that hold."""

    def __init__(
        self, sentence: Sentence, claimed: Sequence[str], sources: dict[str, PassageText], language: str, weigh: Weigh
    ) -> None:
        self.sentence = sentence
        self.claim = Claim(sentence.said, sentence.kind, language, weigh)
        self.claims = asserts(sentence, self.claim)
        sent = [sources[i] for i in claimed if i in sources]
        self.citations = tuple(source.id for source in self._carrying(sent, claimed, sources.values()))
        self.dropped = sum(i not in self.citations for i in claimed)
        # A citation that had to go leaves a claim behind, whatever the sentence looks like.
        self.flagged = not self.citations and (self.claims or (bool(claimed) and not says_nothing(self.claim)))

    @property
    def empty(self) -> bool:
        """Whether there is no word in it that could rest on anything."""
        return not self.claim.terms and not self.claim.hard

    @property
    def _short(self) -> bool:
        return len(self.claim.terms) < _LEAST_WORDS and self.sentence.kind != "code" and not self.claim.hard

    def _carrying(
        self, sent: Sequence[PassageText], claimed: Sequence[str], sources: Iterable[PassageText]
    ) -> Sequence[PassageText]:
        if self.empty:
            return ()
        kept = self._nearest([source for source in sent if self._carries(source, SUPPORT)], sources)
        # What a cited passage denies is not carried by another one that merely shares its words.
        if kept or any(source.support(self.claim).denied for source in sent):
            return kept
        if len(sent) > 1 and (group := together(self.claim, sent)):
            return group
        if self._short and not (claimed or self.claims):
            return ()
        floor = SUPPORT if claimed else DERIVED
        carrying = [source for source in sources if self._carries(source, floor)]
        if self._short:
            return carrying[:1]
        return [max(carrying, key=lambda source: source.window(self.claim))] if carrying else ()

    def _nearest(self, kept: Sequence[PassageText], sources: Iterable[PassageText]) -> Sequence[PassageText]:
        """Return the cited passages without those that share a sentence's words while another one says it plainly."""
        if self._short:
            return kept
        windows = [source.window(self.claim) for source in kept]
        if min(windows, default=1.0) >= 1.0 - BETTER:
            return kept
        best = max(source.window(self.claim) for source in sources if self._carries(source, SUPPORT))
        return [source for source, window in zip(kept, windows, strict=True) if window >= best - BETTER]

    def _carries(self, source: PassageText, floor: float) -> bool:
        # Too few words to be weighed are carried by a clause that has them all.
        if self._short:
            return source.says(self.claim)
        return source.support(self.claim).holds(floor)

    def measure(self, sources: Iterable[PassageText]) -> _Measure | None:
        """Return what the confidence is made of; None for a sentence that says nothing."""
        claim, sources = self.claim, list(sources)
        if len(claim.terms) < _LEAST_WORDS:
            share = float(bool(self.citations))
            return _Measure(share, share, None) if self.citations or self.flagged else None
        if not (self.claims or self.citations):
            return None
        hard = claim.hard
        if any(s.quotes(claim.flat) for s in sources):
            return _Measure(1.0, 1.0, 1.0 if hard else None)
        pairs = frozenset().union(*(source.pairs for source in sources))
        return _Measure(
            window=max((source.window(claim) for source in sources), default=0.0),
            bigrams=sum(pair in pairs for pair in claim.pairs) / len(claim.pairs),
            hard=sum(any(s.holds(t) for s in sources) for t in hard) / len(hard) if hard else None,
        )


def _runs(checked: Sequence[_Checked], text: str) -> Iterator[Span]:
    """Yield the text in runs of sentences with the same citations; one that says nothing belongs to the run before."""
    start, citations = 0, None
    for one in checked:
        if one.empty:
            continue
        if citations is not None and one.citations != citations:
            yield Span(text[start : one.sentence.start], citations)
            start = one.sentence.start
        citations = one.citations
    if text[start:]:
        yield Span(text[start:], citations or ())


def _mean(values: Sequence[float], empty: float) -> float:
    return sum(values) / len(values) if values else empty


def _confidence(measured: Sequence[_Measure]) -> float:
    if not measured:
        return 0.0
    window = _mean([m.window for m in measured], 0.0)
    bigrams = _mean([m.bigrams for m in measured], 0.0)
    hard = _mean([m.hard for m in measured if m.hard is not None], 1.0)
    return 1 / (1 + math.exp(-(9.04 * (0.6 * window + 0.25 * bigrams + 0.15 * hard) - 3.66)))
