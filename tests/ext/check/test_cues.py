"""The numbers, names and cells that a text holds."""

from __future__ import annotations

import pytest

from chapterverse_api.ext.check.cues import cell_value, find_literals, fold_lookalikes, read_row, words_to_digits


def numbers(text: str, language: str = "en") -> list[tuple[str, str]]:
    """Return each number with its unit."""
    return [(found.form, found.unit) for found in find_literals(text, language) if found.is_number]


def names(text: str) -> list[str]:
    return [found.form for found in find_literals(text, "en") if not found.is_number]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30 s, 30s, 30 seconds, 30-second", [("30", "s")] * 4),
        ("5 % and 5% or 5 percent", [("5", "%")] * 3),
        ("1,000 ms, 1'000 ms, 1\u00a0000 ms, 1\u202f000 ms", [("1000", "ms")] * 4),
        ("1,000,000.25 b", [("1000000.25", "b")]),
        ("-5, −5 and –5", [("-5", "")] * 3),
        ("$5, €5 and £5", [("5", "")] * 3),
        ("1st, 2nd, 3rd and 4th", [("1", ""), ("2", ""), ("3", ""), ("4", "")]),
        ("It is .5 or 0.5.", [("0.5", "")] * 2),
        ("`30` and ``5GB``", [("30", ""), ("5", "gb")]),
        ("3µs, 3 turtles", [("3", "µs"), ("3", "")]),
        ("12 - day", [("12", "d")]),
        # A part of a name, a version, a time or a range.
        ("1.2.3, x1, 8080/tcp, a/5, 2-way, 10.0.0.1, 1,5,a", []),
        ("12345678901234567", []),
    ],
)
def test_a_number_is_read_in_any_notation(text: str, expected: list[tuple[str, str]]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "two days and twenty-two hours", [("2", "d"), ("22", "h")]),
        ("en-GB", "Two-day", [("2", "d")]),
        ("en", "a two-factor login", [("2", "")]),
        ("en", "ninety-nine, thirty-one", [("99", ""), ("31", "")]),
        ("en", "one", []),
        ("en", "two-three", []),
        ("en", "day-two", []),
        ("en", "twotimes", []),
        ("de", "zwei Tage", [("2", "d")]),
        ("fr", "dix-huit jours, vingt-deux ans", [("18", "d"), ("22", "year")]),
        ("es", "ochenta y dos", [("80", ""), ("2", "")]),
        ("ja", "two", []),
    ],
)
def test_a_number_is_read_in_words(language: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert numbers(text, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use --out, -x, a/b, a_b, _c, fooBar, HTTP, $HOME, os.path.join or v2.", None),
        ("Use AB or x, and see-saw: a-b.", []),
        ("See a.b.c: and /etc/x/.", ["a.b.c", "/etc/x"]),
        ("=a_b= #c_d", ["a_b", "c_d"]),
        ("`quill   build` and `` a ` b ``", ["quill build", "a"]),
        ("5 and x5", ["x5"]),
        ("a ` ` b", []),
        ("x5 and 5", ["x5"]),
        ("x5", ["x5"]),
    ],
)
def test_a_name_is_a_word_with_signs_or_code(text: str, expected: list[str] | None) -> None:
    every = ["--out", "-x", "a/b", "a_b", "_c", "fooBar", "HTTP", "$HOME", "os.path.join", "v2"]
    assert names(text) == (every if expected is None else expected)


def test_each_is_found_where_it_stands() -> None:
    text = "At `x y` wait two days or 30 s for =a_b and --out."
    found = {literal.form: literal.start for literal in find_literals(text, "en")}
    where = {"x y": "`x y`", "2": "two", "30": "30", "a_b": "a_b", "--out": "--out"}
    assert found == {form: text.index(written) for form, written in where.items()}


@pytest.mark.parametrize(
    ("language", "text", "digits"),
    [
        ("en", "Seven daily, twenty-two weekly", "7 daily, 22 weekly"),
        ("en", "a Two-day rest of two-factor logins", "a 2-day rest of two-factor logins"),
        ("en", "a one-day rest", "a one-day rest"),
        ("de", "Sieben Tage", "7 Tage"),
        ("de", "seven", "seven"),
        ("ja", "seven", "seven"),
    ],
)
def test_words_are_written_as_digits(language: str, text: str, digits: str) -> None:
    assert words_to_digits(text, language) == digits


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("Yes", True),
        (" **ja** ", True),
        ("`oui`", True),
        ("✔\ufe0f", True),
        ("No", False),
        ("❌", False),
        ("", None),
        ("No, 3", None),
        ("y", None),
    ],
)
def test_a_cell_may_say_yes_or_no(cell: str, value: bool | None) -> None:
    assert cell_value(cell) is value


@pytest.mark.parametrize(
    ("row", "language", "read"),
    [
        ("| `port` | No | ✓ | 80 |", "en", "`port` | not Required | Old | 80"),
        ("| `port` | No | ✓ | 80 |", "de-AT", "`port` | nicht Required | Old | 80"),
        ("| `port` | No | ✓ | 80 |", "ja", "`port` |  Required | Old | 80"),
        (r"| a \| b | x | No | Yes | No | Yes |", "en", r"a \| b | x | not Old |  |  | "),
    ],
)
def test_a_bare_cell_is_read_as_its_column(row: str, language: str, read: str) -> None:
    assert read_row(row, ["Name", "Required", "Old", ""], language) == read


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("c\u0430che", "cache"),
        ("\u0421ache", "Cache"),
        ("\u0430\u043e", "\u0430\u043e"),
        ("cache", "cache"),
        ("é", "é"),
    ],
)
def test_look_alikes_are_letters_of_the_word_that_they_stand_in(word: str, folded: str) -> None:
    assert fold_lookalikes(word) == folded
