"""Checks a draft sentence by sentence; the package describes how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from chapterverse.text.sentences import Sentence, split
from chapterverse_api.generation.draft import Draft, Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.grounding.analyzed_text import AnalyzedPassage
from chapterverse_api.grounding.checked_sentence import CheckedSentence
from chapterverse_api.grounding.claimed_ids import sentences_with_ids
from chapterverse_api.grounding.claims import leaves_open
from chapterverse_api.grounding.quotation import verbatim
from chapterverse_api.grounding.results import SentenceCheck, SourceVerdict, VerifiedDraft, Weigh
from chapterverse_api.grounding.support_model import SupportModel, load_model
from chapterverse_api.grounding.verdict import judge


class Verifier:
    """Checks the sentences of one answer, in order, against the passages that were sent; these are read once.

    Args:
        passages: best first.
        context: the reader's words about themselves; a sentence that repeats them claims nothing.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        language: str,
        weigh: Weigh,
        model: SupportModel | None = None,
        *,
        context: str = "",
    ) -> None:
        self._passages = passages
        self._sources = {p.id: AnalyzedPassage(p, language) for p in passages}
        own = Passage("", (), context, context, frozenset(), 0.0, 0.0, None, None)
        self._context = AnalyzedPassage(own, language) if context.strip() else None
        self._language, self._weigh = language, weigh
        self._model = model or load_model()
        self._checked = list[CheckedSentence | SentenceCheck]()

    def check(self, sentence: Sentence, claimed_ids: Sequence[str]) -> CheckedSentence:
        """Return a sentence with its citations that hold.

        Args:
            claimed_ids: the ids that the generator gave.
        """
        one = CheckedSentence(sentence, claimed_ids, self._sources, self._language, self._weigh, self._model)
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
        """Treat a sentence that only repeats the reader's own words as one without a claim."""
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

    def to_result(self, spans: Iterable[Span]) -> VerifiedDraft:
        """Return the result of the check, with its spans."""
        every = [c for c in self._checked if isinstance(c, CheckedSentence)]
        quotes = len(self._checked) - len(every)
        # A section supports its verbatim quotes.
        measured = [c.probability for c in self._checked if c.probability is not None]
        return VerifiedDraft(
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
    model: SupportModel | None = None,
    supports: Callable[[str, str], bool] | None = None,
) -> VerifiedDraft:
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
        for sentence, claimed in sentences_with_ids(part):
            one = verifier.check(sentence, claimed)
            if supports and one.undecided and not supports(verifier.document(one), sentence.said):
                verifier.reject(one)
            spans.append(Span(text[sentence.start : sentence.end], one.citations, check=one.check))
    if spans and any(span.cut for span in draft):
        spans[-1] = replace(spans[-1], cut=True)
    return verifier.to_result(spans)


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
