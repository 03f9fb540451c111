"""What the verdict makes of a score, under weights of a test's own, and of the features that rule a sentence out."""

from __future__ import annotations

import math

import pytest

from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.verdict import (
    SupportModel,
    Verdict,
    is_ruled_out,
    is_verbatim_in,
    judge,
    load_model,
    most_similar,
)
from chapterverse_api.ext.check.verifier import verify
from ext.check.passages import equal_weights, passage

SOURCE = "A build reads the cache before it renders a page."
SAID = "Before it renders a page, a build reads the cache."
ALIGNED = {
    "unaligned_share": 0.0, "missing_share": 0.0, "clause_missing_share": 0.0, "missing_run": 0.0,
    "missing_digits": 0.0, "missing_names": 0.0, "contradictions": 0.0,
}  # fmt: skip


def model(
    score: float, threshold: float = 1.0, uncited_threshold: float = 1.0, vote_threshold: float = 1.0
) -> SupportModel:
    """Return weights by which every sentence has this score."""
    shares = {1: 0.004, 2: 0.016, 3: 0.9}
    return SupportModel((), (), score, threshold, uncited_threshold, vote_threshold, 2.0, 1.0, shares)


def judged(said: str, text: str, weights: SupportModel, kind: str = "prose", *, is_cited: bool = True) -> Verdict:
    sentence = AnalyzedSentence(said, kind, "en", {})
    return judge(sentence, [AnalyzedPassage(passage("1", text), "en")], [], weights, is_cited=is_cited)


@pytest.mark.parametrize(
    ("score", "is_cited", "outcome"),
    [(1.0, True, "supports"), (0.99, True, "silent"), (2.0, False, "supports"), (1.99, False, "silent")],
)
def test_a_sentence_is_supported_from_the_threshold_on(score: float, is_cited: bool, outcome: str) -> None:
    verdict = judged(SAID, SOURCE, model(score, uncited_threshold=2.0), is_cited=is_cited)
    assert verdict == Verdict(outcome, score)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "score", "verdict"),
    [
        # What is ruled out is three below the threshold, or three below its score.
        ("Before it renders a page, a build never reads the cache.", 9.0, Verdict("contradicts", -2.0)),
        ("Before it renders a page, a build never reads the cache.", 0.5, Verdict("contradicts", -2.5)),
        ("The moon is far away.", 9.0, Verdict("silent", -2.0)),
        # Verbatim in the source, however the weights are.
        (SAID, -9.0, Verdict("supports", 30.0)),
        (SAID.removesuffix(".") + "!", -9.0, Verdict("supports", 30.0)),
        (f"Never think so: {SAID}", -9.0, Verdict("silent", -9.0)),
    ],
)
def test_what_is_ruled_out_or_verbatim_has_a_score_of_its_own(text: str, score: float, verdict: Verdict) -> None:
    assert judged(SAID, text, model(score)) == verdict


@pytest.mark.parametrize(("code", "verdict"), [("page", Verdict("silent", -30.0)), (SOURCE, Verdict("supports", 30.0))])
def test_code_is_certain_on_either_side(code: str, verdict: Verdict) -> None:
    assert judged(code, SOURCE, model(9.0), kind="code") == verdict


def test_a_sentence_that_is_verbatim_in_another_passage_is_from_there() -> None:
    sentence = AnalyzedSentence(SAID, "prose", "en", {})
    source, rival = (AnalyzedPassage(passage("1", text), "en") for text in (SOURCE, SAID))
    assert judge(sentence, [source], [rival], model(9.0)) == Verdict("silent", -30.0)
    assert judge(sentence, [source, rival], [rival], model(9.0)) == Verdict("supports", 30.0)
    assert judge(sentence, [], [rival], model(9.0)) == Verdict("silent", -30.0)


@pytest.mark.parametrize(
    ("said", "text", "is_cited", "score"),
    [
        ("Locked vaults.", "Vaults are locked.", True, 1.0),
        ("Locked vaults.", "Vaults are locked.", False, 1.0),
        ("Locked vaults.", "Vaults are not locked.", True, -2.0),
        ("Vaults not locked.", "Vaults are not locked.", True, 1.0),
        ("Locked vaults.", "Vaults lie here. Locked doors creak, and others sing.", True, -2.0),
        # One word is said by the generator's citation alone, and so is a number.
        ("Vaults.", "Vaults are locked.", True, 1.0),
        ("Vaults.", "Vaults are locked.", False, -2.0),
        ("8080, 9090.", "Ports are 9090 and 8080.", True, 1.0),
        ("8080, 9090.", "Ports are 9090 and 8080.", False, -2.0),
        ("80.", "Ports are 9090 and 8080.", True, -2.0),
        # Three words, or two of which one is a name, are measured.
        ("Locked steel vaults.", "Vaults of steel are locked.", True, 9.0),
        ("Locked `vaults`.", "The `vaults` are locked.", True, 9.0),
    ],
)
def test_what_is_too_short_to_be_measured_must_be_in_one_clause(
    said: str, text: str, is_cited: bool, score: float
) -> None:
    assert judged(said, text, model(9.0), is_cited=is_cited).score == score


@pytest.mark.parametrize(
    ("values", "is_out"),
    [
        ({}, False),
        ({"missing_digits": 1.0, "unaligned_share": 1.0}, True),
        ({"missing_names": 1.0}, True),
        ({"missing_share": 0.6}, True),
        ({"missing_share": 0.59}, False),
        ({"clause_missing_share": 0.8}, True),
        ({"clause_missing_share": 0.79}, False),
        ({"missing_run": 4.0}, True),
        ({"missing_run": 3.0}, False),
        # A contradiction is one only about the same subject.
        ({"contradictions": 1.0, "unaligned_share": 0.4}, True),
        ({"contradictions": 1.0, "unaligned_share": 0.41}, False),
        ({"unaligned_share": 0.4}, False),
    ],
)
def test_what_rules_a_sentence_out(values: dict[str, float], is_out: bool) -> None:
    assert is_ruled_out(ALIGNED | values) is is_out


def test_a_number_that_no_source_has_contradicts_only_about_the_same_subject() -> None:
    assert judged(f"{SAID[:-1]} 7 times.", SOURCE, model(9.0)).outcome == "contradicts"
    assert judged("A build waits 7 long weeks.", SOURCE, model(9.0)).outcome == "silent"


def test_scores_become_probabilities_and_shares_rarities() -> None:
    weights = model(0.0)
    assert weights.probability(0.5) == pytest.approx(1 / (1 + math.exp(-2)))
    assert [weights.rarity(term) for term in (0, 1, 3)] == [1.0, 1.0, 0.15]
    assert weights.rarity(2) == pytest.approx(1 - 0.25 * math.log(4))


def test_the_weights_that_come_along_are_in_order() -> None:
    weights = load_model()
    assert weights.threshold < weights.uncited_threshold < weights.vote_threshold
    assert 0.002 < min(weights.section_shares.values()) < max(weights.section_shares.values()) <= 1


@pytest.mark.parametrize(("score", "asks"), [(1.0, False), (0.99, True)])
def test_a_second_vote_is_asked_below_its_threshold(score: float, asks: bool) -> None:
    asked = list[str]()

    def supports(document: str, claim: str) -> bool:
        asked.append(claim)
        return True

    weights = model(score, threshold=0.0)
    verify((Span(SAID, ("1",)),), [passage("1", SOURCE)], "en", equal_weights, weights, supports)
    assert asked == ([SAID] if asks else [])


TEXTS = ("Build cache page.", "Build cache renders.", "Build page.", "Moon.", "Build cache page, before reads.")


@pytest.mark.parametrize(
    ("said", "kind", "found"),
    [
        # Best first, of equals the first; at most three; less than 45 % of the words is too little.
        ("Build cache page reads.", "prose", [4, 0, 1]),
        ("Build moon cheese.", "prose", []),
        ("Build moon.", "prose", [0, 1, 2]),
        ("build", "code", [0, 1, 2]),
        ("zebra", "code", [0, 1, 2]),
    ],
)
def test_the_passages_with_most_of_the_words_are_judged_uncited(said: str, kind: str, found: list[int]) -> None:
    sources = [AnalyzedPassage(passage(f"{n}", text, ()), "en") for n, text in enumerate(TEXTS)]
    assert [int(s.id) for s in most_similar(AnalyzedSentence(said, kind, "en", {}), sources)] == found


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a build reads", True),
        (" a page. ", True),
        ("A BUILD reads", False),
        ("uild reads", False),
        ("a buil", False),
        ("the moon", False),
        ("...", False),
        ("", False),
    ],
)
def test_a_text_is_verbatim_by_whole_words(text: str, holds: bool) -> None:
    assert is_verbatim_in(AnalyzedPassage(passage("1", SOURCE), "en"), text) is holds
