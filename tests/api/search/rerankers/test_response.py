"""The request, and that a reply is accepted or rejected as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chapterverse.errors import ProviderError
from chapterverse_api.ext.models.wire import read_scores, score_texts
from chapterverse_api.search.rerankers import MAX_TEXT_BYTES


def reply(*results: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in results]}


def test_scores_go_where_their_index_says() -> None:
    scores = read_scores(reply((2, 0.9), (0, 0.5), (1, 0)), 3, "Quill")
    assert scores == [0.5, 0.0, 0.9]
    assert all(type(score) is float for score in scores)


def test_both_ends_are_scores() -> None:
    assert read_scores(reply((0, 0), (1, 1)), 2, "Quill") == [0, 1]


def test_what_else_a_reply_holds_does_not_matter() -> None:
    said = reply((0, 0.5))
    said["results"][0]["relevant_spans"] = [{"start": 0, "end": 3, "score": 0.4}]
    assert read_scores({**said, "meta": None}, 1, "Quill") == [0.5]


@pytest.mark.parametrize("found", [None, [], 7, "ranking", {}, {"results": 7}, reply((0, 0.5), (0, 0.5)), reply()])
def test_anything_else_is_refused(found: Any) -> None:
    with pytest.raises(ProviderError, match=r"^Quill answered with something that is no ranking of 2 texts\.$"):
        read_scores(found, 2, "Quill")


def test_of_a_text_that_is_too_long_the_beginning_is_sent() -> None:
    sent: list[str] = []

    def send(texts: Sequence[str]) -> list[float]:
        sent.extend(texts)
        return [1.0] * len(texts)

    # A character is not cut in two, and what begins with nothing is nothing.
    most = MAX_TEXT_BYTES
    texts = ["x" * most, "─" * 2000, "é" * most, " " * most + "x", "\ud800" * 9000]
    assert score_texts(texts, send) == [1.0, 1.0, 1.0, 0.0, 1.0]
    assert sent == [
        "x" * most,
        "─" * (most // 3),
        "é" * (most // 2),
        "?" * most,
    ]


def test_texts_are_sent_in_hundreds_and_blank_ones_not_at_all() -> None:
    sent: list[Sequence[str]] = []

    def send(texts: Sequence[str]) -> list[float]:
        sent.append(texts)
        return [float(text) for text in texts]

    texts = [" " if i % 3 == 0 else str(i) for i in range(301)]
    assert score_texts(texts, send) == [0.0 if i % 3 == 0 else float(i) for i in range(301)]
    assert [len(part) for part in sent] == [100, 100]
