"""Sentences, items, rows and blocks of code of a text that is still being written."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from chapterverse.text.sentences import Sentence, SentenceReader, split
from growth import assert_linear

TEXTS: list[tuple[str, list[str]]] = [
    ("Set it. Build it! Done?", ["Set it. ", "Build it! ", "Done?"]),
    ("Set it, e.g. Here. Or z. B. There.", ["Set it, e.g. Here. ", "Or z. B. There."]),
    ("1. Set it. Then\n2. Build it.\n\nEnd.", ["1. Set it. ", "Then\n", "2. Build it.\n\n", "End."]),
    ("- one\n- [x] two\n> three", ["- one\n", "- [x] two\n", "> three"]),
    ("# Title. More\nText. More.", ["# Title. More\n", "Text. ", "More."]),
    ("**Title. More**\n\nText", ["**Title. More**\n\n", "Text"]),
    ("**Note.** Set it. Go", ["**Note.** ", "Set it. ", "Go"]),
    ("| a | b |\n|---|---|\n| c. D | e |\nEnd", ["| a | b |\n", "|---|---|\n", "| c. D | e |\n", "End"]),
    ("Run:\n\n```sh\na. B\n\nc\n```\nEnd.", ["Run:\n\n", "```sh\na. B\n\nc\n```\n", "End."]),
    ("Run `a. B` now. End.", ["Run `a. B` now. ", "End."]),
    ("The ` sign. It\nends. Now", ["The ` sign. It\nends. ", "Now"]),
    ("Use ```x``` now. End.", ["Use ```x``` now. ", "End."]),
    ("设置。然后！好", ["设置。", "然后！", "好"]),
    ("看 evil。com。然后？好", ["看 evil。com。然后？", "好"]),
    # A model's marks of its sources stay with the sentence before them.
    ("Set it. [1] Build.[2] Go (Source 1). See. (Source 2) End", [
        "Set it. [1] ", "Build.[2] ", "Go (Source 1). ", "See. (Source 2) ", "End",
    ]),
    ("Set it.\n\n[1][2]\n\nBuild", ["Set it.\n\n[1][2]\n\n", "Build"]),
    ("设置。[1]然后。【2】好", ["设置。[1]", "然后。【2】", "好"]),
    ("See. [1](/x) is a link. [docs] too", ["See. ", "[1](/x) is a link. ", "[docs] too"]),
]  # fmt: skip
PARTS = [
    *["[1]", "[", "]", "1", "2", " ", "\n", "`", "```", "~~~", "a", "B.", "(", ")", "【1】", "- ", "é", "。", "†", ":"],
    *["Source", " doc 1", "<", "*", "**", "#", "# ", "| ", "|-", "---|", "1. ", "\n\n", ". ", "! ", "A", "z. ", "B. "],
    *["> ", "__", ". [", "Set it. ", "](https://a", "<1>", "x. "],
]  # fmt: skip


def read(pieces: Iterable[str]) -> list[Sentence]:
    reader = SentenceReader()
    found = [sentence for piece in pieces for sentence in reader.read(piece)]
    return [*found, *reader.read("", last=True)]


@pytest.mark.parametrize(("text", "parts"), TEXTS)
def test_where_each_ends(text: str, parts: list[str]) -> None:
    assert [text[one.start : one.end] for one in split(text)] == parts


def test_kinds_and_words() -> None:
    text = "# Title\n\n| a | b |\n|---|---|\n\n- **Set** it.\n\n```\nx\n```"
    assert [(one.plain_text, one.kind) for one in split(text)] == [
        ("Title", "heading"), ("a | b", "heading"), ("", "prose"), ("Set** it.", "prose"), ("```\nx\n```", "code"),
    ]  # fmt: skip


def test_pieces_make_no_difference_and_nothing_is_lost() -> None:
    chance = random.Random(5)
    for _ in range(5000):
        text = "".join(chance.choice(PARTS) for _ in range(chance.randint(1, 25)))
        whole = list(split(text))
        assert "".join(text[one.start : one.end] for one in whole) == text
        cuts = sorted(chance.randrange(len(text) + 1) for _ in range(5))
        assert read(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)) == whole, text
        assert read(text) == whole, text


def test_a_sentence_is_told_with_the_first_character_behind_it() -> None:
    reader = SentenceReader()
    assert list(reader.read("Set it. ")) == []
    assert [one.plain_text for one in reader.read("B")] == ["Set it."]
    assert reader.waiting == "B"
    assert [one.kind for one in reader.read(".\n\n```\nx\n```\n")] == ["prose", "code"]
    list(reader.read("```\nx"))
    assert reader.is_code


@pytest.mark.parametrize(
    "unit", ["a", " ", "a. ", "[1]", "[", "(", "`", "```\n", "\n", "- ", "> ", "1. ", "| ", "#", "**"]
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    assert_linear(lambda size: list(split(unit * (size // len(unit)))), 4_000, 32_000)
