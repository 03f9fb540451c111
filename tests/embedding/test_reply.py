"""Valid vectors, and replies that are rejected as a whole."""

from __future__ import annotations

import math
from typing import Any

import pytest

from chapterverse.errors import ProviderError
from chapterverse.ext.embedders.models import check_vectors

BAD_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, 1e16, 10**400, "0.1", None, True, [0.1], {}]


def test_good_vectors_become_tuples_of_floats() -> None:
    assert check_vectors([[1, 0.5], [-2, 0]], 2, 2, "Quill") == [(1.0, 0.5), (-2.0, 0.0)]
    assert check_vectors([[-128, 127]], 1, 2, "Quill", int8=True) == [(-128.0, 127.0)]
    assert check_vectors([], 0, 2, "Quill") == []


@pytest.mark.parametrize("found", [None, {}, "ab", [[1.0, 2.0]], [[1.0, 2.0]] * 3])
def test_a_wrong_count_is_refused(found: Any) -> None:
    with pytest.raises(ProviderError, match=r"^Quill did not answer with 2 vectors\.$"):
        check_vectors(found, 2, 2, "Quill")


@pytest.mark.parametrize("bad", [[1.0], [1.0, 2.0, 3.0], [], None, {}, "ab", (1.0, 2.0), [0.0, 0.0], [1e-300, 0]])
def test_a_bad_vector_is_refused(bad: Any) -> None:
    with pytest.raises(ProviderError, match=r"^Quill answered with something that is no vector of 2 numbers\.$"):
        check_vectors([[1.0, 2.0], bad], 2, 2, "Quill")


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=lambda bad: repr(bad)[:12])
@pytest.mark.parametrize("int8", [False, True])
def test_a_bad_number_is_refused(bad: Any, int8: bool) -> None:
    with pytest.raises(ProviderError):
        check_vectors([[1, bad]], 1, 2, "Quill", int8=int8)


@pytest.mark.parametrize("bad", [128, -129, 0.5, 1.0])
def test_int8_holds_whole_numbers_of_one_byte(bad: Any) -> None:
    with pytest.raises(ProviderError):
        check_vectors([[1, bad]], 1, 2, "Quill", int8=True)
    with pytest.raises(ProviderError):
        check_vectors([[0, 0]], 1, 2, "Quill", int8=True)
