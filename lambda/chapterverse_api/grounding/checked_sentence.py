"""Finds the citations of one sentence that hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chapterverse.text.sentences import Sentence
from chapterverse_api.generation.draft import Check
from chapterverse_api.grounding.analyzed_text import SHARED_PREFIX_CHARS, AnalyzedPassage, AnalyzedSentence
from chapterverse_api.grounding.claims import is_claim, says_nothing
from chapterverse_api.grounding.results import IdfFunction, SentenceCheck
from chapterverse_api.grounding.support_model import SupportModel
from chapterverse_api.grounding.verdict import Outcome, Verdict, judge, most_similar

#: The share of a sentence's words, by rarity, that may repeat words of the question that no source holds; set by hand.
#: Of 1,270 true claims the highest was .15.
_MAX_UNKNOWN_SHARE = 0.2
#: Stands for a part of a character that a model's server has lost.
_LOST_CHARACTER = "\ufffd"


@dataclass(slots=True)
class CheckedSentence:
    """A sentence with the citations that hold.

    Attributes:
        cited_ids: the ids that the generator cites.
        citations: the ids that hold.
        is_claim: whether the sentence needs a source.
        is_damaged: whether a part of a character was lost on its way, so that the words around it are not the model's.
        dropped: how many citations do not hold.
        outcome: the verdict of the nearest passage; None if no passage was checked.
        support_probability: the probability, 0 to 1, that the passages say the sentence; 0 if none was checked.
        needs_second_vote: whether the citations hold by a score that the words alone leave undecided.
        contradicting_source: the passage that most likely contradicts it; None if none does.
    """

    sentence: Sentence
    analyzed: AnalyzedSentence
    cited_ids: tuple[str, ...]
    citations: tuple[str, ...]
    is_claim: bool
    is_damaged: bool
    dropped: int
    outcome: Outcome | None
    support_probability: float
    needs_second_vote: bool
    contradicting_source: AnalyzedPassage | None

    @property
    def is_unsupported(self) -> bool:
        """Whether it is a claim, and no source was found to say it."""
        return self.is_claim and not self.citations

    @property
    def check(self) -> Check:
        return "confirmed" if self.citations else "unconfirmed" if self.is_unsupported else "none"

    @property
    def probability(self) -> float | None:
        """The probability that the sources say the sentence; None if it needs no source."""
        return self.support_probability if self.is_claim or self.citations else None

    def reject(self) -> None:
        """Drop the citations, because a second vote is against them."""
        self.dropped += len(self.citations)
        self.citations, self.outcome, self.support_probability = (), "silent", 0.0

    @property
    def record(self) -> SentenceCheck:
        return SentenceCheck(
            self.sentence.plain_text, self.cited_ids, self.citations, self.check, self.outcome, self.probability
        )


class SentenceChecker:
    """Checks sentences against the passages that were sent.

    Args:
        sources: the passages by id, best first.
        unknown_terms: the terms of the question's words that no source holds. The sources are silent on a sentence
            that is about one of them.
    """

    def __init__(
        self,
        sources: Mapping[str, AnalyzedPassage],
        language: str,
        idf: IdfFunction,
        model: SupportModel,
        unknown_terms: frozenset[int] = frozenset(),
    ) -> None:
        self._sources, self._language, self._idf, self._model = sources, language, idf, model
        self._unknown_terms = unknown_terms

    def check(self, sentence: Sentence, cited_ids: Sequence[str]) -> CheckedSentence:
        """Return a sentence with its citations that hold."""
        analyzed = AnalyzedSentence(sentence.plain_text, sentence.kind, self._language, self._idf(sentence.plain_text))
        claim, search = is_claim(analyzed), _SupportSearch(analyzed, list(self._sources.values()), self._model)
        citations: tuple[str, ...] = ()
        is_damaged = _LOST_CHARACTER in sentence.plain_text and not any(
            _LOST_CHARACTER in source.normalized for source in self._sources.values()
        )
        # What only announces leaves its citation to what follows: code that no source holds must not seem to have one.
        announces = not claim and analyzed.text.endswith((":", "："))
        is_silent = announces or says_nothing(analyzed) or self._is_about_unknown(analyzed)
        if not (is_damaged or analyzed.is_empty or is_silent):
            cited = [self._sources[i] for i in cited_ids if i in self._sources]
            # A sentence that needs no source gets none that the generator doesn't cite.
            citations = tuple(s.id for s in search.find_sources(cited, uncited=claim or bool(cited_ids)))
        best = search.best
        return CheckedSentence(
            sentence=sentence,
            analyzed=analyzed,
            cited_ids=tuple(cited_ids),
            citations=citations,
            is_claim=claim or is_damaged,
            is_damaged=is_damaged,
            dropped=0 if announces else sum(i not in citations for i in cited_ids),
            outcome=best.outcome if best else None,
            support_probability=self._model.probability(best.score) if best else 0.0,
            needs_second_vote=bool(citations) and best is not None and best.score < self._model.vote_threshold,
            contradicting_source=search.contradiction[0] if search.contradiction else None,
        )

    def _is_about_unknown(self, sentence: AnalyzedSentence) -> bool:
        """Whether many of a sentence's words repeat words of the question that no source holds in any form."""
        if not self._unknown_terms:
            return False
        rarity, unknown, total = self._model.rarity, 0.0, 0.0
        for surface, terms in zip(sentence.surfaces, sentence.terms, strict=True):
            total += rarity(terms[0]) if terms else 0.0
            if terms and terms[0] in self._unknown_terms:
                begins_like = any(surface[:SHARED_PREFIX_CHARS] in s.prefixes for s in self._sources.values())
                unknown += 0.0 if begins_like else rarity(terms[0])
        return unknown > 0 and unknown >= _MAX_UNKNOWN_SHARE * total


class _SupportSearch:
    """Searches the passages that support one sentence.

    Attributes:
        best: the verdict with the highest score.
        contradiction: the passage that contradicts the sentence with the highest score, and this score.
    """

    def __init__(self, sentence: AnalyzedSentence, sources: Sequence[AnalyzedPassage], model: SupportModel) -> None:
        self._sentence, self._sources, self._model = sentence, sources, model
        self.best: Verdict | None = None
        self.contradiction: tuple[AnalyzedPassage, float] | None = None

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
        candidates = [source for source in self._sources if source not in cited] if uncited else []
        for source in most_similar(self._sentence, candidates):
            verdict = self._judge([source], is_cited=False)
            if verdict.supports:
                return [source]
            if verdict.outcome == "contradicts":
                # The passage with the most of its words comes first, because another one may share only some.
                break
        return []

    def _judge(self, sources: Sequence[AnalyzedPassage], *, is_cited: bool = True) -> Verdict:
        rivals = [s for s in self._sources if s not in sources]
        verdict = judge(self._sentence, sources, rivals, self._model, is_cited=is_cited)
        if self.best is None or verdict.score > self.best.score:
            self.best = verdict
        if verdict.outcome == "contradicts" and (not self.contradiction or verdict.score > self.contradiction[1]):
            self.contradiction = sources[0], verdict.score
        return verdict

    def _sources_of_clauses(self, cited: Sequence[AnalyzedPassage]) -> list[AnalyzedPassage]:
        """Return the passages that contain most of a clause of the sentence."""
        sources = [clause.source for clause in self._sentence.align(cited).clauses]
        return [source for source in cited if source in sources] or [cited[0]]
