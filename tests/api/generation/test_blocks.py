from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse_api.generation.blocks import CODE_LINES, QuotableBlock, split
from growth import assert_linear

PIECES = """A word. |and e.g. this|- item|1. step|  - nested|\n|\n\n|```|````sh|~~~|**Label**|**Note**\n\n|Text:|  |\t|\
\r\n|    code|# x|终。|é| |\x0b|\u2028|> q|`c. D`""".split("|")
MARKDOWN = st.lists(st.sampled_from([*PIECES, "| a | b |", "| --- | --- |"]), max_size=40).map("".join)


def units(text: str) -> list[QuotableBlock]:
    return list(split(text, "en"))


def texts(text: str) -> list[str]:
    return [unit.text for unit in units(text)]


@given(MARKDOWN)
def test_units_joined_with_their_glue_are_the_text(text: str) -> None:
    found = units(text)
    assert "".join(u.glue + u.text for u in found) == text.rstrip()
    assert all(u.text and not u.glue.strip() for u in found)


@given(st.text())
def test_so_they_are_for_any_text(text: str) -> None:
    assert "".join(u.glue + u.text for u in units(text)) == text.rstrip()


def test_prose_is_cut_at_sentences() -> None:
    text = "Set e.g. this. Then Quill 1.2 starts! Does it? It does.\nAnd 3 more."
    assert texts(text) == ["Set e.g. this.", "Then Quill 1.2 starts!", "Does it?", "It does.", "And 3 more."]


def test_sentences_of_languages_without_spaces() -> None:
    assert texts("运行它。然后停止！好吗？") == ["运行它。", "然后停止！", "好吗？"]


def test_an_item_keeps_what_belongs_to_it() -> None:
    text = "- One. Two.\n  Three.\n\n  ```sh\n  run\n\n  it\n  ```\n- Four.\n\n1. Five.\n   - Six."
    assert texts(text) == ["- One. Two.\n  Three.\n\n  ```sh\n  run\n\n  it\n  ```", "- Four.", "1. Five.\n   - Six."]


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_is_one_unit_whatever_it_holds(fence: str) -> None:
    code = f"{fence}sh\n# Not. A. Heading\n\n- no item\n| no | table |\n`` ` ~~\n{fence}"
    text = f"Before.\n{code}\nAfter. Word."
    assert texts(text) == ["Before.", code, "After.", "Word."]
    assert [u.code for u in units(text)] == [False, True, False, False]


def test_a_fence_that_is_never_closed_goes_on_to_the_end() -> None:
    assert texts("Before.\n\n```sh\na. B\n\nc") == ["Before.", "```sh\na. B\n\nc"]


def test_a_longer_fence_closes_a_shorter_one_and_not_the_other_way_round() -> None:
    assert texts("````\n```\n````\nx") == ["````\n```\n````", "x"]
    assert texts("```\r\na\r\n```\r\nx") == ["```\r\na\r\n```", "x"]


def test_a_table_is_one_unit() -> None:
    table = "| a. B | c |\n| --- | --- |\n| 1. D | 2 |"
    assert texts(f"{table}\n\nAfter.") == [table, "After."]


def test_a_quote_may_open_with_a_paragraph_or_a_list_but_not_inside_one() -> None:
    found = units("One. Two.\n\n- a\n- b\n\n- c\n\nThree.\n\n```\nx\n```\n\n```\ny\n```")
    opens = [(u.text, u.opens) for u in found]
    assert opens == [
        ("One.", True), ("Two.", False), ("- a", True), ("- b", False), ("- c", False), ("Three.", True),
        ("```\nx\n```", True), ("```\ny\n```", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "announces"),
    [
        ("Run:", True),
        ("运行：", True),
        ("**macOS**", True),
        ("**macOS** runs.", False),
        ("Run.", False),
        ("- a:", True),
    ],
)
def test_what_announces(text: str, announces: bool) -> None:
    assert units(text)[0].announces == announces


def test_a_listing_is_longer_than_an_example() -> None:
    code = ["```\n" + "x\n" * n + "```" for n in (CODE_LINES, CODE_LINES + 1)]
    assert [units(c)[0].long_code for c in code] == [False, True]


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "- a\n",
        "1. ",
        "```\n",
        "~~~",
        "**",
        ". ",
        ".  a",
        "| ",
        "\n",
        " \n",
        ":\n\n",
        "- \n  ",
        "。",
        "  a\n",
        "```",
    ],
)
def test_hostile_markdown_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        text = unit * (size // len(unit))
        assert "".join(u.glue + u.text for u in split(text, "en")) == text.rstrip()

    assert_linear(work, 5_000, 50_000)
