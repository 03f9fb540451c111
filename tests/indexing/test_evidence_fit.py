from __future__ import annotations

import random
from dataclasses import replace
from statistics import mean

import pytest

from chapterverse.calibration import Calibration, ChunkFeatures, Coefficients, logistic
from chapterverse.indexing.evidence_fit import regress
from chapterverse_api.ext.evaluation.observations import (
    FLOOR,
    Example,
    auc,
    cross_validate,
    fit_to_questions,
    measure_calibration,
    regress_rising,
)
from growth import assert_linear

BAR = 0.08


def example(chance: random.Random, answerable: bool, candidates: int = 4, *, embedded: bool = False) -> Example:
    """Return a question whose best candidate has more of it if it is answerable, most of the time."""
    middle = 0.62 if answerable else 0.38

    def drawn(share: float) -> float:
        return min(1.0, max(0.0, chance.gauss(middle * share, 0.15)))

    familiarity = drawn(1.3)
    shares = (1.0, *(chance.random() for _ in range(candidates - 1)))
    found = [ChunkFeatures(drawn(s), drawn(s) / 2, 1.5, familiarity, drawn(s) if embedded else None) for s in shares]
    return Example(answerable, tuple(found))


def examples(answerable: int, unanswerable: int, *, embedded: bool = False, seed: int = 0) -> list[Example]:
    chance = random.Random(seed)
    kinds = [True] * answerable + [False] * unanswerable
    return [example(chance, kind, embedded=embedded) for kind in kinds]


def test_no_more_is_falsely_refused_than_allowed_and_the_rest_is_refused() -> None:
    asked = examples(100, 50)
    for bar in (0.0, 0.05, 0.1, 0.3):
        figures = measure_calibration(asked, fit_to_questions(asked, bar))
        assert figures.false_refusals <= bar
    strict, lax = (measure_calibration(asked, fit_to_questions(asked, bar)) for bar in (0.0, 0.3))
    assert strict.refused < lax.refused
    assert lax.refused > 0.9


def test_figures_are_of_questions_that_the_fit_has_not_seen() -> None:
    asked = examples(60, 40)
    honest = cross_validate(asked, BAR)
    fresh = measure_calibration(examples(2000, 2000, seed=1), fit_to_questions(asked, BAR))
    assert honest.auc == pytest.approx(fresh.auc, abs=0.06)
    assert honest.refused == pytest.approx(fresh.refused, abs=0.15)


def test_what_can_not_be_told_apart_is_not_reported_as_told() -> None:
    chance = random.Random(5)
    asked = [replace(e, answerable=chance.random() < 0.5) for e in examples(60, 60)]
    assert cross_validate(asked, BAR).auc == pytest.approx(0.5, abs=0.12)


def test_no_weight_but_the_bias_is_negative() -> None:
    chance = random.Random(3)
    # The longer a question is here, the less it is answered.
    asked = [
        replace(e, candidates=tuple(f._replace(length=1 + chance.random() + (not e.answerable)) for f in e.candidates))
        for e in examples(80, 80, embedded=True)
    ]
    calibration = fit_to_questions(asked, BAR)
    assert calibration.both is not None
    for weights in (calibration.words, calibration.both):
        assert weights.length == 0.0
        assert min(weights.coverage, weights.strength, weights.familiarity, weights.nearness) >= 0
        assert weights.coverage > 0


def test_a_weaker_candidate_changes_nothing() -> None:
    asked = examples(40, 40, embedded=True)
    weak = [
        replace(e, candidates=(*e.candidates, *(f._replace(coverage=f.coverage / 2) for f in e.candidates)))
        for e in asked
    ]
    assert fit_to_questions(weak, BAR) == fit_to_questions(asked, BAR)


def test_the_floor_is_one_half_with_the_embedder_and_without() -> None:
    asked = examples(80, 40, embedded=True)
    calibration = fit_to_questions(asked, BAR)
    assert (calibration.floor, calibration.questions) == (FLOOR, 120)
    by_words = [replace(e, candidates=tuple(f._replace(nearness=None) for f in e.candidates)) for e in asked]
    assert calibration.both is not None
    assert measure_calibration(asked, calibration).auc > measure_calibration(by_words, calibration).auc
    assert measure_calibration(by_words, calibration).false_refusals <= BAR
    assert fit_to_questions(by_words, BAR) == replace(calibration, both=None)


def test_what_only_meaning_finds_passes_where_meaning_tells() -> None:
    chance = random.Random(2)
    asked = [
        Example(kind, (ChunkFeatures(0.0, 0.0, 1.4, 0.5, chance.gauss(0.7 if kind else 0.3, 0.05)),))
        for kind in (True, False)
        for _ in range(30)
    ]
    calibration = fit_to_questions(asked, BAR)
    wordless = ChunkFeatures(0.0, 0.0, 1.4, 0.5, 0.7)
    assert calibration.of(wordless) >= calibration.floor > calibration.of(wordless._replace(nearness=0.3))


def test_a_question_that_nothing_was_found_for_is_refused() -> None:
    asked = [*examples(30, 10), *[Example(False, ())] * 5, Example(True, ())]
    figures = measure_calibration(asked, fit_to_questions(asked, BAR))
    assert figures.false_refusals >= 1 / 31
    assert figures.refused >= 5 / 15


@pytest.mark.parametrize("kind", [True, False])
def test_only_one_kind_finds_anything(kind: bool) -> None:
    asked = [*[e for e in examples(12, 12) if e.answerable is kind], *[Example(not kind, ())] * 12]
    figures = measure_calibration(asked, fit_to_questions(asked, BAR))
    assert (figures.refused, figures.false_refusals) == ((1.0, 0.0) if kind else (1.0, 1.0))


def test_equal_evidence_for_both_kinds_is_no_crash() -> None:
    same = (ChunkFeatures(0.5, 0.2, 1.0, 0.5),)
    asked = [Example(kind, same) for kind in (True, False) for _ in range(12)]
    calibration = fit_to_questions(asked, BAR)
    assert measure_calibration(asked, calibration).false_refusals == 0.0
    assert cross_validate(asked, BAR).auc == 0.5


def test_the_order_of_the_rows_decides_nothing() -> None:
    asked = examples(40, 30, embedded=True)
    assert fit_to_questions(asked[::-1], BAR).to_json() == fit_to_questions(asked, BAR).to_json()


def test_the_time_of_a_fit_grows_with_the_questions() -> None:
    assert_linear(lambda count: fit_to_questions(examples(count, count), BAR), 20, 160)


# Regression


def test_regression_finds_the_coefficients_that_made_the_labels() -> None:
    chance = random.Random(0)
    truth = (-1.0, 2.0, -3.0)
    rows = [(1.0, chance.gauss(0, 1), chance.gauss(0, 1)) for _ in range(3000)]
    labels = [int(chance.random() < logistic(sum(b * x for b, x in zip(truth, row, strict=True)))) for row in rows]
    assert regress(rows, labels, 1e-6) == pytest.approx(truth, abs=0.25)
    assert regress_rising(rows, labels, 1e-6)[2] == 0.0


def test_a_row_that_counts_twice_is_two_rows() -> None:
    rows, labels = [(1.0, 0.0), (1.0, 1.0), (1.0, 0.4)], [0, 1, 1]
    assert regress([*rows, rows[2]], [*labels, 1], 0.1) == pytest.approx(regress(rows, labels, 0.1, [1, 1, 2]))


def test_auc_is_how_often_the_one_is_above_the_other() -> None:
    assert auc([2, 3], [0, 1]) == 1.0
    assert auc([0, 1], [2, 3]) == 0.0
    assert auc([1, 2], [1, 2]) == 0.5


def test_measures_are_means_over_either_kind() -> None:
    calibration = Calibration(Coefficients(-1, 2))
    asked = [
        Example(kind, (ChunkFeatures(c, 0, 0),)) for kind, c in ((True, 0.9), (True, 0.2), (False, 0.4), (False, 0.6))
    ]
    figures = measure_calibration(asked, calibration)
    assert (figures.refused, figures.false_refusals, figures.auc) == (0.5, 0.5, mean((1, 1, 0, 0)))
