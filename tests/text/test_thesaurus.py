from __future__ import annotations

from pathlib import Path

import pytest
from thesaurus import compile_rows, rows

from chapterverse.text import thesaurus


def found(text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {entry.words: entry.synonyms for entry in thesaurus.find_synonyms(text)}


def test_the_compiled_file_is_what_the_entries_make() -> None:
    entries = list(rows())
    assert len(entries) > 10_000
    file = Path(thesaurus.__file__).with_name("thesaurus.txt")
    assert file.read_text(encoding="utf-8") == compile_rows(entries)


def test_a_word_has_the_stems_that_docs_use() -> None:
    assert "imag" in found("(PICTURES)")[("pictures",)]


def test_an_expression_counts_and_not_what_is_inside() -> None:
    assert list(found("get rid of")) == [("get", "rid")]
    assert "remov" in found("get rid of")[("get", "rid")]


def test_function_words_belong_to_an_expression_and_not_to_its_words() -> None:
    (words,) = found("log in")
    assert words == ("log",)
    assert found("log") != found("log in")


@pytest.mark.parametrize("text", ["", "?", "and of the", "my_pictures pictures.toml", "画像 写真", "é" * 4000])
def test_what_is_no_plain_word_has_no_entry(text: str) -> None:
    assert found(text) == {}


def test_a_long_text_is_read_once() -> None:
    assert len(list(thesaurus.find_synonyms("get rid of " * 1000))) == 1000


def test_rows_are_compiled_to_stems() -> None:
    rows = [
        ("Get rid of", ["remove", "delete"]),
        ("gets rid of", ["delete", "getting"]),
        ("color scheme", ["the theme", "color palette", "schemes"]),
        ("one two three four", ["count"]),
        ("and of", ["join"]),
        ("alone", []),
    ]
    assert compile_rows(rows) == "color scheme\ttheme\nget rid of\tdelet remov\n"
