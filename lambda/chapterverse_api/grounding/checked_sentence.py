"""Finds the citations of one sentence that hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chapterverse.text.sentences import Sentence
from chapterverse_api.generation.draft import Check
from chapterverse_api.grounding.analyzed_text import AnalyzedPassage, Claim
from chapterverse_api.grounding.claims import asserts, says_nothing
from chapterverse_api.grounding.results import SentenceCheck, Weigh
from chapterverse_api.grounding.support_model import SupportModel
from chapterverse_api.grounding.verdict import Outcome, Verdict, judge

#: Least share of a sentence's words, by idf, that a passage must contain to be checked without being cited.
_MIN_SHARE = 0.45


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
        claimed_ids: Sequence[str],
        sources: Mapping[str, AnalyzedPassage],
        language: str,
        weigh: Weigh,
        model: SupportModel,
    ) -> None:
        self.sentence, self.claimed, self._model = sentence, tuple(claimed_ids), model
        self._sources = list(sources.values())
        self.claim = Claim(sentence.said, sentence.kind, language, weigh(sentence.said))
        self.claims = asserts(sentence, self.claim)
        self.against: AnalyzedPassage | None = None
        self._against = float("-inf")
        self._best: Verdict | None = None
        claimed_sources = [sources[i] for i in claimed_ids if i in sources]
        self.citations = tuple(s.id for s in self._find_support(claimed_sources, claimed_ids))
        self.dropped = sum(i not in self.citations for i in claimed_ids)
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
        """Return the probability that the sources support the sentence; None where it claims nothing."""
        if not (self.claims or self.citations):
            return None
        # No passage shares enough of its words to be checked, or a second vote is against it.
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

    def _judge(self, sources: Sequence[AnalyzedPassage], *, is_cited: bool = True) -> Verdict:
        others = [s for s in self._sources if s not in sources]
        found = judge(self.claim, sources, others, self._model, is_cited=is_cited)
        if self._best is None or found.score > self._best.score:
            self._best = found
        if found.outcome == "contradicts" and found.score > self._against:
            self.against, self._against = sources[0], found.score
        return found

    def _find_support(
        self, claimed_sources: Sequence[AnalyzedPassage], claimed_ids: Sequence[str]
    ) -> Sequence[AnalyzedPassage]:
        if self.empty or says_nothing(self.claim):
            return ()
        if claimed_sources:
            alone = {s.id: self._judge([s]) for s in claimed_sources}
            kept: Sequence[AnalyzedPassage] = [s for s in claimed_sources if alone[s.id].supports]
            if not kept and len(claimed_sources) > 1 and self._judge(claimed_sources).supports:
                kept = self._add_by_clause(claimed_sources)
            # Another passage that merely shares its words doesn't support a sentence that a cited one contradicts.
            if kept or any(v.outcome == "contradicts" for v in alone.values()):
                return kept
        elif not claimed_ids and not self.claims:
            return ()
        for source in self._candidates(claimed_sources):
            found = self._judge([source], is_cited=False)
            if found.supports:
                return [source]
            if found.outcome == "contradicts":
                # The passage with the most of its words comes first, because another one may share only some.
                break
        return ()

    def _add_by_clause(self, sources: Sequence[AnalyzedPassage]) -> Sequence[AnalyzedPassage]:
        """Return the sources that hold a clause of the sentence best."""
        used = {id(source) for _, _, source in self.claim.align(sources).clauses}
        return [s for s in sources if id(s) in used] or sources[:1]

    def _candidates(self, claimed_sources: Sequence[AnalyzedPassage]) -> Iterable[AnalyzedPassage]:
        shares = [(self.claim.share(s.terms), -n, s) for n, s in enumerate(self._sources) if s not in claimed_sources]
        found = [(share, n, s) for share, n, s in shares if share >= _MIN_SHARE or self.claim.kind == "code"]
        return [s for _, _, s in sorted(found, key=lambda f: f[:2], reverse=True)[:3]]
