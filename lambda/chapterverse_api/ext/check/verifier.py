"""Checks a draft sentence by sentence; the package describes how."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from chapterverse.calibration import WeightedQuestion
from chapterverse.text import lexical
from chapterverse.text.sentences import Sentence, SentenceReader, split
from chapterverse_api.draft.draft import OMISSION, Draft, Span
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.analyzed_text import (
    FENCE_MARKS,
    SHARED_PREFIX_CHARS,
    AnalyzedPassage,
    AnalyzedSentence,
    holds,
)
from chapterverse_api.ext.check.claims import is_claim, leaves_open, says_nothing
from chapterverse_api.ext.check.results import CheckedSentence, IdfFunction, SourceVerdict, VerifiedDraft
from chapterverse_api.ext.check.verdict import SupportModel, Verdict, judge, load_model, most_similar

#: The share of a sentence's words, by rarity, that may repeat words of the question that no source holds; set by hand.
#: Of 1,270 true claims the highest was .15.
_MAX_UNKNOWN_SHARE = 0.2
#: Stands for a part of a character that a model's server has lost.
_LOST_CHARACTER = "\ufffd"


class Verifier:
    """Checks the sentences of one answer, in order, against the passages that were sent.

    The passages are read once, and only if a sentence is to be checked: a verbatim quote needs no reading.

    Args:
        passages: best first.
        context: the reader's words about themselves; a sentence that repeats them is no claim.
        question: the words of the reader's question, by which an answer may invent a subject that no passage has.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        language: str,
        idf: IdfFunction,
        model: SupportModel | None = None,
        *,
        context: str = "",
        question: WeightedQuestion | None = None,
    ) -> None:
        self._passages, self._language, self._idf = passages, language, idf
        self._question = question or WeightedQuestion()
        reader = Passage("", (), context, context)
        self._context = AnalyzedPassage(reader, language) if context.strip() else None
        self._model = model or load_model()
        self._checked = list[CheckedSentence]()

    @cached_property
    def _sources(self) -> dict[str, AnalyzedPassage]:
        return {p.id: AnalyzedPassage(p, self._language) for p in self._passages}

    @cached_property
    def _unknown_terms(self) -> frozenset[int]:
        """The terms of the question's words that no passage holds, in parts or by a synonym; its address counts."""
        held = frozenset().union(*(source.terms for source in self._sources.values()))
        # The name of a site is in its addresses.
        held |= lexical.terms_of(word for p in self._passages for word in lexical.words(p.url or "", self._language))
        words, synonyms = self._question.words, self._question.synonyms
        known = {n for synonym in synonyms if synonym.term in held for n in synonym.word_indices}
        known |= {n for n, word in enumerate(words) if any(holds(held, alternative) for alternative in word)}
        return frozenset(alternative[0] for n, word in enumerate(words) if n not in known for alternative in word)

    def check(self, sentence: Sentence, cited_ids: Sequence[str]) -> CheckedSentence:
        """Return a sentence with its citations that hold.

        Args:
            cited_ids: the ids that the generator cites.
        """
        text, sources = sentence.plain_text, list(self._sources.values())
        analyzed = AnalyzedSentence(text, sentence.kind, self._language, self._idf(text))
        claims, search = is_claim(analyzed), _SupportSearch(analyzed, sources, self._model)
        is_damaged = _LOST_CHARACTER in text and not any(_LOST_CHARACTER in source.normalized for source in sources)
        # What only announces leaves its citation to what follows: code that no source holds must not seem to have one.
        announces = not claims and analyzed.text.endswith((":", "："))
        citations: tuple[str, ...] = ()
        if not (is_damaged or announces or self._are_silent_on(analyzed)):
            cited = [self._sources[i] for i in cited_ids if i in self._sources]
            # A sentence that needs no source gets none that the generator doesn't cite.
            citations = tuple(s.id for s in search.find_sources(cited, uncited=claims or bool(cited_ids)))
        best = search.best
        checked = CheckedSentence(
            text=text,
            claimed=tuple(cited_ids),
            citations=citations,
            is_claim=claims or is_damaged,
            outcome=best.outcome if best else None,
            support_probability=self._model.probability(best.score) if best else 0.0,
            analyzed=analyzed,
            dropped=0 if announces else sum(i not in citations for i in cited_ids),
            needs_second_vote=bool(citations) and best is not None and best.score < self._model.vote_threshold,
            is_damaged=is_damaged,
            contradicting_source=search.contradiction[0] if search.contradiction else None,
        )
        self._forgive(checked)
        self._checked.append(checked)
        return checked

    def _are_silent_on(self, sentence: AnalyzedSentence) -> bool:
        """Whether the sources are silent on a sentence: it says nothing, or of what they don't know.

        Many of its words then repeat words of the question that no source holds in any form.
        """
        if sentence.is_empty or says_nothing(sentence):
            return True
        if not self._unknown_terms:
            return False
        rarity, unknown, total = self._model.rarity, 0.0, 0.0
        for surface, terms in zip(sentence.surfaces, sentence.terms, strict=True):
            total += rarity(terms[0]) if terms else 0.0
            if terms and terms[0] in self._unknown_terms:
                begins_like = any(surface[:SHARED_PREFIX_CHARS] in s.prefixes for s in self._sources.values())
                unknown += 0.0 if begins_like else rarity(terms[0])
        return unknown > 0 and unknown >= _MAX_UNKNOWN_SHARE * total

    def reject(self, checked: CheckedSentence) -> None:
        """Take the citations of a sentence away, since a second vote is against it."""
        checked.dropped += len(checked.citations)
        checked.citations, checked.outcome, checked.support_probability = (), "silent", 0.0
        self._forgive(checked)

    def document(self, checked: CheckedSentence) -> str:
        """Return the headings and texts that a sentence cites."""
        cited = (p for p in self._passages if p.id in checked.citations)
        return "\n\n".join(f"{' › '.join(p.path)}\n\n{p.section}" for p in cited)

    def _forgive(self, checked: CheckedSentence) -> None:
        """Treat a sentence that only repeats the reader's own words as no claim."""
        if checked.is_unsupported and self._context and checked.analyzed:
            checked.is_claim = not judge(checked.analyzed, [self._context], [], self._model).supports

    def verdict(self, checked: CheckedSentence) -> SourceVerdict:
        """Return which passage decides on a sentence, and by which words."""
        source = self._sources[checked.citations[0]] if checked.citations else checked.contradicting_source
        probability = checked.probability or 0.0
        if source is None:
            return SourceVerdict("silent", checked.is_claim, probability=probability)
        excerpt = checked.analyzed.align([source]).best if checked.analyzed else None
        quote = excerpt.verbatim if excerpt else ""
        return SourceVerdict("supports" if checked.citations else "contradicts", True, source.id, quote, probability)

    def check_quote(self, span: Span) -> Iterator[Span]:
        """Yield a quote with the citations that hold: whole if the passage that it cites holds it verbatim."""
        if is_verbatim(span, self._passages):
            self._checked.append(CheckedSentence.of_quote(span))
            yield replace(span, check="confirmed", mark=span.mark if (span.mark or "") in span.text else None)
            return
        for sentence in split(span.text):
            checked = self.check(sentence, span.citations)
            yield Span(span.text[sentence.start : sentence.end], checked.citations, check=checked.check)

    def to_result(self, spans: Iterable[Span]) -> VerifiedDraft:
        """Return the result of the check, with its spans."""
        checked = self._checked
        probabilities = [c.probability for c in checked if c.probability is not None]
        return VerifiedDraft(
            spans=tuple(spans),
            dropped=sum(c.dropped for c in checked),
            confidence=sum(probabilities) / len(probabilities) if probabilities else 0.0,
            unsupported_count=sum(c.is_unsupported for c in checked),
            claim_count=sum(c.is_claim or bool(c.citations) for c in checked),
            # A sentence with a citation that holds only repeats what a passage leaves open.
            leaves_open=any(
                c.analyzed and c.analyzed.kind == "prose" and not c.citations and leaves_open(c.text) for c in checked
            ),
            checks=tuple(checked),
        )


@dataclass(slots=True)
class _SupportSearch:
    """Searches the passages that support one sentence.

    Attributes:
        best: the verdict with the highest score.
        contradiction: the passage that contradicts the sentence with the highest score, and this score.
    """

    sentence: AnalyzedSentence
    sources: Sequence[AnalyzedPassage]
    model: SupportModel
    best: Verdict | None = None
    contradiction: tuple[AnalyzedPassage, float] | None = None

    def find_sources(self, cited: Sequence[AnalyzedPassage], *, uncited: bool) -> Sequence[AnalyzedPassage]:
        """Return the cited passages that support the sentence, alone or together, or else another one.

        Args:
            uncited: whether another one is searched for.
        """
        if cited:
            verdicts = [self._judge([source]) for source in cited]
            supporting = [source for source, verdict in zip(cited, verdicts, strict=True) if verdict.supports]
            if not supporting and len(cited) > 1 and self._judge(cited).supports:
                supporting = self._sources_of_clauses(cited)
            # Another passage that merely shares its words doesn't support a sentence that a cited one contradicts.
            if supporting or any(verdict.outcome == "contradicts" for verdict in verdicts):
                return supporting
        candidates = [source for source in self.sources if source not in cited] if uncited else []
        for source in most_similar(self.sentence, candidates):
            verdict = self._judge([source], is_cited=False)
            if verdict.supports:
                return [source]
            if verdict.outcome == "contradicts":
                # The passage with the most of its words comes first, because another one may share only some.
                break
        return []

    def _judge(self, sources: Sequence[AnalyzedPassage], *, is_cited: bool = True) -> Verdict:
        rivals = [s for s in self.sources if s not in sources]
        verdict = judge(self.sentence, sources, rivals, self.model, is_cited=is_cited)
        if self.best is None or verdict.score > self.best.score:
            self.best = verdict
        if verdict.outcome == "contradicts" and (not self.contradiction or verdict.score > self.contradiction[1]):
            self.contradiction = sources[0], verdict.score
        return verdict

    def _sources_of_clauses(self, cited: Sequence[AnalyzedPassage]) -> list[AnalyzedPassage]:
        """Return the passages that contain most of a clause of the sentence."""
        sources = [clause.source for clause in self.sentence.align(cited).clauses]
        return [source for source in cited if source in sources] or [cited[0]]


def is_verbatim(quote: Span, passages: Iterable[Passage]) -> bool:
    """Whether the section of the one passage that a quote cites holds each of its lines, in order.

    The lines that state omissions, and the closing fence of code that was cut, are the quote's own.
    """
    section = next((p.section for p in passages if (p.id,) == quote.citations), None)
    if section is None:
        return False
    at = 0
    for line in (line.strip() for line in quote.text.split("\n")):
        if line.startswith((OMISSION, *FENCE_MARKS)):
            continue
        at = section.find(line, at)
        if at < 0:
            return False
        at += len(line)
    return bool(quote.text.strip())


def verify(
    draft: Draft,
    passages: Sequence[Passage],
    language: str,
    idf: IdfFunction,
    model: SupportModel | None = None,
    supports: Callable[[str, str], bool] | None = None,
) -> VerifiedDraft:
    """Check a whole draft against the passages that were sent, best passage first.

    Args:
        supports: the second vote, on a document and a claim; without it the words decide alone.
    """
    verifier, spans = Verifier(passages, language, idf, model), list[Span]()
    for kind, group in groupby(draft, key=lambda span: span.kind):
        if kind == "framing":
            spans.extend(replace(span, citations=()) for span in group)
        elif kind == "quote":
            spans.extend(checked for span in group for checked in verifier.check_quote(span))
        else:
            spans.extend(_check_prose(list(group), verifier, supports))
    if spans and any(span.cut for span in draft):
        spans[-1] = replace(spans[-1], cut=True)
    return verifier.to_result(spans)


def _check_prose(
    prose: Sequence[Span], verifier: Verifier, supports: Callable[[str, str], bool] | None
) -> Iterator[Span]:
    text = "".join(span.text for span in prose)
    for sentence, cited_ids in sentences_with_ids(prose):
        checked = verifier.check(sentence, cited_ids)
        if supports and checked.needs_second_vote and not supports(verifier.document(checked), sentence.plain_text):
            verifier.reject(checked)
        yield Span(text[sentence.start : sentence.end], checked.citations, check=checked.check)


class CitedRanges:
    """The ranges of a text, in order, and the ids that are cited for each."""

    def __init__(self) -> None:
        self._ranges: deque[tuple[int, int, tuple[str, ...]]] = deque()
        self._end = 0

    def add(self, end: int, ids: tuple[str, ...]) -> None:
        """Add the range from the end of the last one, with the ids that are cited for it."""
        self._ranges.append((self._end, end, ids))
        self._end = end

    def find_ids(self, text: str, sentence: Sentence) -> tuple[str, ...]:
        """Return the ids that are cited for any part of a sentence. Sentences must come in the order of the text."""
        cited: dict[str, None] = {}
        sentence_end = sentence.start + len(text[sentence.start : sentence.end].rstrip())
        while self._ranges and self._ranges[0][1] <= sentence.start:
            self._ranges.popleft()
        for start, end, ids in self._ranges:
            if start >= sentence_end:
                break
            if ids and text[max(start, sentence.start) : min(end, sentence_end)].strip():
                cited.update(dict.fromkeys(ids))
        return tuple(cited)


def sentences_with_ids(spans: Sequence[Span]) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Yield the sentences of spans, each with the ids that are cited for any part of it."""
    ranges, end = CitedRanges(), 0
    for span in spans:
        end += len(span.text)
        ranges.add(end, span.citations)
    text = "".join(span.text for span in spans)
    for sentence in SentenceReader().read(text, last=True):
        yield sentence, ranges.find_ids(text, sentence)
