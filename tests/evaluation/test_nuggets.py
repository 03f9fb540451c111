from __future__ import annotations

from typing import Any

import pytest

from chapterverse.errors import InputError
from chapterverse_api.ext.evaluation.questions import read_nuggets


@pytest.mark.parametrize(
    ("nugget", "text", "stands"),
    [
        ("8765", "It listens on port 8765.", True),
        ("80", "It listens on port 8080.", False),
        ("listen port", "Set the *listen\n  PORT* first.", True),
        ("`--port`", "Pass `--port` to it.", True),
        ("--port 80", "Pass **--port** `80` to it.", True),
        (["port", "socket"], "It opens a socket.", True),
        (["port", "socket"], "It opens a file.", False),
        ("/ports? \\d+/", "On PORT 80.", True),
        ("/^ports?$/", "On port 80.", False),
        (["/[/", "x"][1:], "x", True),
        ("C++", "Write it in C++, if you must.", True),
        ("/", "/", None),
        ("a/b", "It is at a/b.", True),
    ],
)
def test_a_fact_stands_in_an_answer(nugget: Any, text: str, stands: bool | None) -> None:
    if stands is None:
        with pytest.raises(InputError, match="none may be empty"):
            read_nuggets([nugget])
    else:
        assert read_nuggets([nugget])[0].stands_in(text) is stands


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("8765", '"nuggets" must be a list.'),
        ({"a": 1}, '"nuggets" must be a list.'),
        ([7], 'each of "nuggets" must be a text or a list of texts, and none may be empty.'),
        ([[]], 'each of "nuggets" must be a text or a list of texts, and none may be empty.'),
        ([["a", " "]], 'each of "nuggets" must be a text or a list of texts, and none may be empty.'),
        ([["a", ["b"]]], 'each of "nuggets" must be a text or a list of texts, and none may be empty.'),
        (["/(/"], "the nugget '/(/' is no regular expression."),
        (["/a{9999999999999}/"], "the nugget '/a{9999999999999}/' is no regular expression."),
    ],
)
def test_what_is_none_is_one_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        read_nuggets(value)
    assert str(error.value) == sentence


def test_none_are_needed() -> None:
    assert read_nuggets([]) == ()
