"""Batches of the right size, and the position of a text that is too long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.embedding import Vector
from chapterverse.errors import ProviderError, TextRejected, TextTooLong
from chapterverse.ext.embedders.models import MAX_BYTES, MAX_TEXTS, embed_in_batches


class Model:
    """Takes texts of up to ten characters in lists of up to `most`; "bad" is no text to it."""

    def __init__(self, most: int = MAX_TEXTS) -> None:
        self.requests: list[list[str]] = []
        self._most = most

    def send(self, texts: Sequence[str], limit: int = 10) -> list[Vector]:
        self.requests.append(list(texts))
        if len(texts) > self._most or any(len(t) > limit or t == "bad" for t in texts):
            raise TextRejected("refused")
        return [(float(len(t)),) for t in texts]

    def send_short(self, texts: Sequence[str]) -> list[Vector]:
        return self.send(texts, 10**9)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return embed_in_batches(texts, self.send, self.send_short, "quill-1")


@given(st.lists(st.text(max_size=10).filter(lambda t: t != "bad"), max_size=300), st.integers(1, 200))
def test_every_text_gets_its_vector_in_order(texts: list[str], most: int) -> None:
    assert Model(most).embed(texts) == [(float(len(t)),) for t in texts]


@given(st.integers(1, 250), st.data())
def test_the_first_text_that_is_too_long_is_named(count: int, data: st.DataObject) -> None:
    long = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    texts = ["long " * 9 if i in long else "short" for i in range(count)]
    model = Model()
    with pytest.raises(TextTooLong, match=f"^Text {min(long)} is too long for quill-1.$") as caught:
        model.embed(texts)
    assert caught.value.position == min(long)
    # Two requests for each halving of one slice, the slices before it, and the one that asks why.
    assert len(model.requests) <= 2 * 7 + 3 + 1


def test_a_text_that_is_wrong_in_another_way_is_not_too_long() -> None:
    with pytest.raises(ProviderError, match="refused") as caught:
        Model().embed(["good", "bad", "good"])
    assert not isinstance(caught.value, TextTooLong)


def test_slices_hold_96_texts() -> None:
    model = Model()
    model.embed(["a"] * 200)
    assert [len(r) for r in model.requests] == [96, 96, 8]


def test_slices_hold_a_bounded_number_of_bytes() -> None:
    sent: list[int] = []

    def send(texts: Sequence[str]) -> list[Vector]:
        sent.append(sum(len(t.encode()) for t in texts))
        return [(1.0,)] * len(texts)

    embed_in_batches(["ü" * 50_000] * 7 + ["x" * 400_000] + ["a"], send, send, "quill-1")
    assert sent == [300_000, 300_000, 100_000, 400_000, 1]
    assert MAX_BYTES == 300_000
