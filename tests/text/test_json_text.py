"""JSON of others: what is parsed, and where the parser stops."""

from __future__ import annotations

import json

import pytest

from chapterverse.text.json_text import MAX_LEVELS, NestedTooDeep, check_depth, parse_json


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("text", ['{"a": [1, "[[", {"b": "\\"["}]}', "[]", '"\\ud83d"', nested(MAX_LEVELS), "7", "NaN"])
def test_json_is_parsed_as_the_standard_library_does(text: str) -> None:
    expected = repr(json.loads(text))
    assert repr(parse_json(text)) == expected
    assert repr(parse_json(text.encode())) == repr(parse_json(b"\xef\xbb\xbf" + text.encode())) == expected


@pytest.mark.parametrize(
    "text",
    [
        nested(MAX_LEVELS + 1),
        "[" * 1_000_000,
        '{"a":' * 1_000_000,
        "[{" + '"a":[{' * 500,
        '"]]]]]]]]"' + nested(MAX_LEVELS + 1),
    ],
)
def test_deep_json_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(NestedTooDeep):
        parse_json(text)


@pytest.mark.parametrize("text", ["", "{", b"\xff", '"' + '\\"[' * 300_000, "9" * 5000])
def test_broken_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - each has its own words
        parse_json(text)
    assert not isinstance(caught.value, NestedTooDeep)


def test_brackets_in_strings_and_side_by_side_are_no_levels() -> None:
    check_depth(json.dumps(["[{" * 500] * 500), 1)
    check_depth(json.dumps([[]] * 500), 2)
    with pytest.raises(NestedTooDeep, match="deeper than 2"):
        check_depth(json.dumps([[[]]]), 2)
