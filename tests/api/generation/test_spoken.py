"""A model's pieces without its thoughts and in whole characters."""

from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Iterable

import pytest

from chapterverse.errors import ProviderError
from chapterverse_api.generation.spoken import MOST_CHARACTERS, spoken, written


def model(pieces: Iterable[str], cut: bool = False) -> Steps[str, None, bool]:
    yield from pieces
    return cut


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A key.", "A key."),
        (" \n A key.", "A key."),
        ("<think>Hm.</think>A key.", "A key."),
        ("\n<think>\n</think>\n\n<think>Or?</think> A key. <think>", "A key. <think>"),
        ("<thin air> is a key", "<thin air> is a key"),
        ("<think", "<think"),
        ("<think>Hm.</thin", ""),
        ("a \U0001f600", "a \U0001f600"),
        ("\ud83d", "\ufffd"),
        ("a\ud83db\ude00", "a\ufffdb\ufffd"),
    ],
)
def test_what_is_said_aloud(text: str, said: str) -> None:
    for size in (1, 2, 3, 7, 100):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert "".join(spoken(model(pieces))) == said, size


def test_two_halves_of_a_character_meet() -> None:
    assert list(spoken(model(["a \ud83d", "\ude00 b"]))) == ["a ", "\U0001f600 b"]


def test_words_are_not_held_back() -> None:
    assert list(spoken(model(["A", " key", "."]))) == ["A", " key", "."]


def test_a_text_is_written_whole_or_failed() -> None:
    assert written(model([" A", " key.\n"])) == "A key."
    with pytest.raises(ProviderError, match=r"^The model answered with nothing: try again\.$"):
        written(model([" ", "\n"]))
    with pytest.raises(ProviderError, match=r"^The model spent its whole answer on thoughts"):
        written(model(["<think>and"], cut=True))


def test_a_model_without_measure_is_left_before_its_end() -> None:
    def endless() -> Steps[str, None, bool]:
        while True:
            yield "word " * 100

    with pytest.raises(ProviderError, match=r"^The model answered with more than it was asked for\.$"):
        written(endless())
    assert len(written(model(["a" * MOST_CHARACTERS]))) == MOST_CHARACTERS
