"""The formula on examples worked out by hand, and what each kind of lie costs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from chapterverse import lexical
from chapterverse_api.generation import Passage, Span
from chapterverse_api.grounding import verify
from growth import assert_linear

ALPHA = "Alpha beta gamma delta."
PORTS = "The server listens on port 8080 unless `QUILL_PORT` names another number."


def passage(number: str, text: str, path: tuple[str, ...] = ("Title",)) -> Passage:
    return Passage(number, path, text, text, frozenset(), 1.0, 1.0, None, None)


def evenly(text: str) -> Mapping[int, float]:
    return {}


def confidence(text: str, *sources: str) -> float:
    passages = [passage(str(i), source) for i, source in enumerate(sources, 1)]
    return verify((Span(text, ("1",)),), passages, "en", evenly).confidence


def sigmoid(window: float, bigrams: float, hard: float) -> float:
    return 1 / (1 + math.exp(-(9.04 * (0.6 * window + 0.25 * bigrams + 0.15 * hard) - 3.66)))


@pytest.mark.parametrize(
    ("text", "window", "bigrams", "hard"),
    [
        ("Alpha beta gamma delta", 1, 1, 1),
        ("Alpha beta gamma omega.", 3 / 4, 2 / 3, 1),
        ("Delta gamma beta alpha.", 1, 0, 1),
        ("Omega psi chi phi.", 0, 0, 1),
        ("Alpha beta gamma 77.", 3 / 4, 2 / 3, 0),
        # Two sentences: each component is averaged over them, `hard` over those that have any.
        ("Alpha beta gamma delta. Omega psi chi phi.", 1 / 2, 1 / 2, 1),
        ("Alpha beta gamma delta. Alpha beta gamma 77.", 7 / 8, 5 / 6, 0),
    ],
)
def test_the_formula_on_examples_worked_out_by_hand(text: str, window: float, bigrams: float, hard: float) -> None:
    assert confidence(text, ALPHA) == pytest.approx(sigmoid(window, bigrams, hard))


def test_a_quote_and_the_same_words_elsewhere_are_worth_the_same() -> None:
    assert confidence("Alpha beta gamma delta", f"Before. {ALPHA} After.") == pytest.approx(sigmoid(1, 1, 1))


def test_words_count_by_their_rarity() -> None:
    rare = next(lexical.words("omega")).terms[0]
    found = verify((Span("Alpha beta gamma omega.", ("1",)),), [passage("1", ALPHA)], "en", lambda _: {rare: 7.0})
    assert found.confidence == pytest.approx(sigmoid(3 / 10, 2 / 3, 1))
    assert found.spans[0].citations == ()


def test_each_component_is_taken_where_it_is_best() -> None:
    # The window of the first passage, the number of the second.
    assert confidence("Alpha beta gamma 77.", ALPHA, "There are 77 of them.") == pytest.approx(sigmoid(3 / 4, 2 / 3, 1))


def test_a_window_is_sixty_words_wide() -> None:
    far = " ".join(["alpha", *(f"filler{i}" for i in range(100)), "beta", "gamma"])
    assert confidence("Alpha beta gamma", far) == pytest.approx(sigmoid(2 / 3, 1 / 2, 1))


def test_a_sentence_longer_than_a_window_gets_one_that_could_hold_it() -> None:
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(90)]
    shuffled = [*words[45:], *words[:45]]
    assert confidence(" ".join(shuffled), " ".join(words)) == pytest.approx(sigmoid(1, 88 / 89, 1))


@pytest.mark.parametrize("text", ["", "Yes.", "Of the and.", "\n\n**"])
def test_what_says_nothing_has_no_confidence(text: str) -> None:
    assert confidence(text, ALPHA) == 0.0


def test_headings_and_marks_around_a_sentence_do_not_count_against_it() -> None:
    source = passage("1", "- Set the port.\n\n## Why it matters", ("Server", "Port of call"))
    span = Span("**Server › Port of call**\n\n> - Set the port.", ("1",))
    assert verify((span,), [source], "en", evenly).confidence == pytest.approx(sigmoid(1, 1, 1))


@pytest.mark.parametrize(
    ("mutated", "cited"),
    [
        (PORTS, True),
        ("On port 8080 the server listens, unless `QUILL_PORT` names another.", True),
        (PORTS.replace("8080", "9090"), False),
        (PORTS.replace("8080", "80"), False),
        (PORTS.replace("QUILL_PORT", "QUILL_HOST"), False),
        (f"{PORTS} Seven golden bicycles await every penguin.", False),
        ("Seven golden bicycles await every penguin.", False),
    ],
)
def test_a_mutation_loses_the_citation_and_confidence(mutated: str, cited: bool) -> None:
    sources = [passage("1", PORTS)]
    found = verify((Span(mutated, ("1",)),), sources, "en", evenly)
    assert (found.spans[0].citations, found.dropped) == ((("1",), 0) if cited else ((), 1))
    true = verify((Span(PORTS, ("1",)),), sources, "en", evenly)
    assert mutated == PORTS or found.confidence < true.confidence


def test_a_short_span_keeps_its_citation_only_if_it_was_sent() -> None:
    found = verify((Span("Yes.", ("1", "2")),), [passage("1", ALPHA)], "en", evenly)
    assert found.spans[0].citations == ("1",)
    assert found.dropped == 1


def test_a_citation_is_kept_once() -> None:
    found = verify((Span(ALPHA, ("1", "1")),), [passage("1", ALPHA)], "en", evenly)
    assert found.spans[0].citations == ("1",)


def test_a_citation_moves_to_the_best_passage_that_holds() -> None:
    sources = [passage("1", "Nothing of the kind."), passage("2", ALPHA), passage("3", ALPHA)]
    found = verify((Span(ALPHA, ("1",)),), sources, "en", evenly)
    assert (found.spans[0].citations, found.dropped) == (("2",), 1)


def test_uncited_text_is_measured_and_our_own_framing_is_not() -> None:
    sources = [passage("1", ALPHA)]
    lie = "Seven golden bicycles await every penguin. "
    claimed = verify((Span(lie), Span(ALPHA, ("1",))), sources, "en", evenly)
    framed = verify((Span(lie, framing=True), Span(ALPHA, ("1",))), sources, "en", evenly)
    assert claimed.confidence == pytest.approx(sigmoid(1 / 2, 1 / 2, 1))
    assert framed.confidence == pytest.approx(sigmoid(1, 1, 1))


def test_the_text_of_a_draft_is_never_changed() -> None:
    draft = (Span(" a\n"), Span(ALPHA, ("9",)), Span("\t"))
    assert [s.text for s in verify(draft, [passage("1", ALPHA)], "en", evenly).spans] == [s.text for s in draft]


def test_a_part_of_a_word_is_no_quote() -> None:
    assert confidence("able runners win", "Enable runners winning races.") < sigmoid(1, 1, 1)


@pytest.mark.parametrize("unit", ["a", "a.b", "`", "1.", "\n", "a_", "*", "`1 "])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        text = unit * (size // len(unit))
        verify((Span(text, ("1",)),), [passage("1", text[1:])], "en", evenly)

    assert_linear(work, 5_000, 40_000)
