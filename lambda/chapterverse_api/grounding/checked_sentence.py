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
        claimed: Sequence[str],
        sources: Mapping[str, AnalyzedPassage],
        language: str,
        weigh: Weigh,
        model: SupportModel,
    ) -> None:
        self.sentence, self.claimed, self._model = sentence, tuple(claimed), model
        self._sources = list(sources.values())
        self.claim = Claim(sentence.said, sentence.kind, language, weigh(sentence.said))
        self.claims = asserts(sentence, self.claim)
        self.against: AnalyzedPassage | None = None
        self._against = float("-inf")
        self._best: Verdict | None = None
        sent = [sources[i] for i in claimed if i in sources]
        self.citations = tuple(s.id for s in self._find_support(sent, claimed))
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

    def _judge(self, cited: Sequence[AnalyzedPassage], *, claimed: bool = True) -> Verdict:
        others = [s for s in self._sources if s not in cited]
        found = judge(self.claim, cited, others, self._model, claimed=claimed)
        if self._best is None or found.score > self._best.score:
            self._best = found
        if found.outcome == "contradicts" and found.score > self._against:
            self.against, self._against = cited[0], found.score
        return found

    def _find_support(self, sent: Sequence[AnalyzedPassage], claimed: Sequence[str]) -> Sequence[AnalyzedPassage]:
        if self.empty or says_nothing(self.claim):
            return ()
        if sent:
            alone = {s.id: self._judge([s]) for s in sent}
            kept: Sequence[AnalyzedPassage] = [s for s in sent if alone[s.id].supports]
            if not kept and len(sent) > 1 and self._judge(sent).supports:
                kept = self._add_by_clause(sent)
            # Another passage that merely shares its words doesn't support a sentence that a cited one contradicts.
            if kept or any(v.outcome == "contradicts" for v in alone.values()):
                return kept
        elif not claimed and not self.claims:
            return ()
        for source in self._candidates(sent):
            found = self._judge([source], claimed=False)
            if found.supports:
                return [source]
            if found.outcome == "contradicts":
                # The passage with the most of its words comes first, because another one may share only some.
                break
        return ()

    def _add_by_clause(self, sent: Sequence[AnalyzedPassage]) -> Sequence[AnalyzedPassage]:
        """Return the sources that hold a clause of the sentence best."""
        used = {id(source) for _, _, source in self.claim.align(sent).clauses}
        return [s for s in sent if id(s) in used] or sent[:1]

    def _candidates(self, sent: Sequence[AnalyzedPassage]) -> Iterable[AnalyzedPassage]:
        shares = [(self.claim.share(s.terms), -n, s) for n, s in enumerate(self._sources) if s not in sent]
        found = [(share, n, s) for share, n, s in shares if share >= _MIN_SHARE or self.claim.kind == "code"]
        return [s for _, _, s in sorted(found, key=lambda f: f[:2], reverse=True)[:3]]
