"""Checks a draft sentence by sentence; the package describes how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

from chapterverse.calibration import WeightedQuestion
from chapterverse.text import lexical
from chapterverse.text.sentences import Sentence, split
from chapterverse_api.generation.draft import OMISSION, Draft, Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.grounding.analyzed_text import FENCE_MARKS, AnalyzedPassage, holds
from chapterverse_api.grounding.checked_sentence import CheckedSentence, SentenceChecker
from chapterverse_api.grounding.cited_ranges import sentences_with_ids
from chapterverse_api.grounding.claims import leaves_open
from chapterverse_api.grounding.results import IdfFunction, SentenceCheck, SourceVerdict, VerifiedDraft
from chapterverse_api.grounding.support_model import SupportModel, load_model
from chapterverse_api.grounding.verdict import judge


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
        self._checked = list[CheckedSentence | SentenceCheck]()

    @cached_property
    def _sources(self) -> dict[str, AnalyzedPassage]:
        return {p.id: AnalyzedPassage(p, self._language) for p in self._passages}

    @cached_property
    def _checker(self) -> SentenceChecker:
        return SentenceChecker(self._sources, self._language, self._idf, self._model, self._unknown_terms)

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
        checked = self._checker.check(sentence, cited_ids)
        self._forgive(checked)
        self._checked.append(checked)
        return checked

    def reject(self, checked: CheckedSentence) -> None:
        """Take the citations of a sentence away, since a second vote is against it."""
        checked.reject()
        self._forgive(checked)

    def document(self, checked: CheckedSentence) -> str:
        """Return the headings and texts that a sentence cites."""
        cited = (p for p in self._passages if p.id in checked.citations)
        return "\n\n".join(f"{' › '.join(p.path)}\n\n{p.section}" for p in cited)

    def _forgive(self, checked: CheckedSentence) -> None:
        """Treat a sentence that only repeats the reader's own words as no claim."""
        if checked.is_unsupported and self._context:
            checked.is_claim = not judge(checked.analyzed, [self._context], [], self._model).supports

    def verdict(self, checked: CheckedSentence) -> SourceVerdict:
        """Return which passage decides on a sentence, and by which words."""
        source = self._sources[checked.citations[0]] if checked.citations else checked.contradicting_source
        probability = checked.probability or 0.0
        if source is None:
            return SourceVerdict("silent", checked.is_claim, probability=probability)
        excerpt = checked.analyzed.align([source]).best
        quote = excerpt.verbatim if excerpt else ""
        return SourceVerdict("supports" if checked.citations else "contradicts", True, source.id, quote, probability)

    def check_quote(self, span: Span) -> Iterator[Span]:
        """Yield a quote with the citations that hold: whole if the passage that it cites holds it verbatim."""
        if is_verbatim(span, self._passages):
            self._checked.append(SentenceCheck(span.text, span.citations, span.citations, "confirmed", "supports", 1.0))
            yield replace(span, check="confirmed", mark=span.mark if (span.mark or "") in span.text else None)
            return
        for sentence in split(span.text):
            checked = self.check(sentence, span.citations)
            yield Span(span.text[sentence.start : sentence.end], checked.citations, check=checked.check)

    def to_result(self, spans: Iterable[Span]) -> VerifiedDraft:
        """Return the result of the check, with its spans."""
        sentences = [c for c in self._checked if isinstance(c, CheckedSentence)]
        quote_count = len(self._checked) - len(sentences)
        probabilities = [c.probability for c in self._checked if c.probability is not None]
        return VerifiedDraft(
            spans=tuple(spans),
            dropped=sum(c.dropped for c in sentences),
            confidence=sum(probabilities) / len(probabilities) if probabilities else 0.0,
            unsupported_count=sum(c.is_unsupported for c in sentences),
            claim_count=sum(c.is_claim or bool(c.citations) for c in sentences) + quote_count,
            # A sentence with a citation that holds only repeats what a passage leaves open.
            leaves_open=any(
                leaves_open(c.sentence.plain_text) for c in sentences if c.sentence.kind == "prose" and not c.citations
            ),
            checks=tuple(c if isinstance(c, SentenceCheck) else c.record for c in self._checked),
        )


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
