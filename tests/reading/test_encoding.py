"""A pair never exceeds what the model was trained with, and each of its tokens knows its part."""

from __future__ import annotations

from pathlib import Path

from chapterverse.reading.encoding import MAX_PAIR_TOKENS, MAX_QUESTION_TOKENS, PairEncoder, WordPiece, readable

VOCABULARY = Path(__file__).parents[2] / "reading/chapterverse_reading/vocabulary.txt"
ENCODER = PairEncoder(WordPiece(VOCABULARY.read_text("utf-8").split("\n")))


def test_a_long_question_and_a_long_passage_fit() -> None:
    question = ENCODER.question("word " * 1000)
    assert len(question) == MAX_QUESTION_TOKENS
    pair = ENCODER.pair(question, ENCODER.passage(["Title"] * 50, ["a part of a passage " * 40] * 20))
    assert len(pair.ids) == len(pair.parts) == MAX_PAIR_TOKENS
    assert pair.ids[-1] == pair.ids[len(question) + 1]


def test_tokens_know_their_part() -> None:
    passage = ENCODER.passage(["Pools", "Limits"], ["One limit.", "Another one."])
    assert set(passage.parts) == {-1, 0, 1}
    pair = ENCODER.pair(ENCODER.question("limits"), passage)
    assert pair.parts[: pair.question_tokens] == (-1,) * pair.question_tokens
    assert pair.parts[-1] == -1
    assert sorted({p for p in pair.parts if p >= 0}) == [0, 1]


def test_addresses_and_tags_are_not_read() -> None:
    assert readable('See [the pool](https://x.example/a_(b) "Pool") and <b>that</b>.') == "See the pool and  that ."
    assert readable("[" * 3000) == "[" * 3000
